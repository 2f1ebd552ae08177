/* tf.image.adjust_contrast; workloads/adjust_contrast.c defines the operation.  `ordered`
 * adds in the CPU's order, so it has the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/tree.h"
#include "workloads/adjust_contrast.h"

enum {
    TASK_PIXELS = 64, /* summed by a thread before its atomicAdd */
    JOIN_SIDE = 32    /* channels of a thread block, and members of a tree */
};

/* The sum of channel CHANNEL over pixels [BEGIN, END) of IMAGE, in order. */
__device__ static float pixels_sum(const struct adjust_contrast *contrast, int64_t image,
                                   int64_t channel, int64_t begin, int64_t end)
{
    const float *x =
        contrast->x + image * contrast->pixels * contrast->shape.channels + channel;
    float sum = 0;

    for (int64_t pixel = begin; pixel < end; pixel++) {
        sum += x[pixel * contrast->shape.channels];
    }
    return sum;
}

__global__ static void atomic_kernel(struct adjust_contrast contrast, int64_t tasks)
{
    KERNEL_FOR(i, contrast.shape.images * tasks * contrast.shape.channels)
    {
        int64_t channel = i % contrast.shape.channels,
                task = i / contrast.shape.channels % tasks;
        int64_t image = i / contrast.shape.channels / tasks, begin = task * TASK_PIXELS;
        int64_t end = begin + TASK_PIXELS;

        if (end > contrast.pixels) {
            end = contrast.pixels;
        }
        atomicAdd(&contrast.sums[image * contrast.shape.channels + channel],
                  pixels_sum(&contrast, image, channel, begin, end));
    }
}

__global__ static void slot_kernel(struct adjust_contrast contrast)
{
    KERNEL_FOR(i, contrast.shape.images * CONTRAST_SLOTS * contrast.shape.channels)
    {
        int64_t channel = i % contrast.shape.channels;
        int64_t slot = i / contrast.shape.channels % CONTRAST_SLOTS;

        contrast.parts[i] =
            pixels_sum(&contrast, i / contrast.shape.channels / CONTRAST_SLOTS, channel,
                       slot * contrast.pixels / CONTRAST_SLOTS,
                       (slot + 1) * contrast.pixels / CONTRAST_SLOTS);
    }
}

/* Joins the slots of an image, blockIdx.y; neighbours read neighbours. */
__global__ static void join_kernel(struct adjust_contrast contrast)
{
    int64_t channel = (int64_t)blockIdx.x * JOIN_SIDE + threadIdx.x;
    bool has_tree = channel < contrast.shape.channels;
    float *parts =
        contrast.parts + blockIdx.y * CONTRAST_SLOTS * contrast.shape.channels + channel;

    tree_sum_in_block(parts, CONTRAST_SLOTS, contrast.shape.channels,
                      has_tree ? (int64_t)threadIdx.y : (int64_t)CONTRAST_SLOTS,
                      JOIN_SIDE);
    if (has_tree && threadIdx.y == 0) {
        contrast.sums[blockIdx.y * contrast.shape.channels + channel] = parts[0];
    }
}

__global__ static void adjust_kernel(struct adjust_contrast contrast)
{
    KERNEL_FOR(i, contrast.shape.images * contrast.pixels * contrast.shape.channels)
    {
        int64_t image = i / contrast.shape.channels / contrast.pixels;
        float sum =
            contrast.sums[image * contrast.shape.channels + i % contrast.shape.channels];

        contrast.y[i] = contrast_adjust(contrast.x[i], sum, contrast.pixels);
    }
}

static void adjust(const struct adjust_contrast *contrast)
{
    LAUNCH_ITEMS(adjust_kernel,
                 contrast->shape.images * contrast->pixels * contrast->shape.channels,
                 *contrast);
}

static void compute_unordered(struct run *run)
{
    const struct adjust_contrast *contrast = (const struct adjust_contrast *)run->state;
    int64_t tasks = ceil_div(contrast->pixels, TASK_PIXELS);
    int64_t sums = contrast->shape.images * contrast->shape.channels;

    CUDA_TRY(cudaMemsetAsync(contrast->sums, 0, (size_t)sums * sizeof(float)));
    LAUNCH_ITEMS(atomic_kernel, sums * tasks, *contrast, tasks);
    adjust(contrast);
}

static void compute_ordered(struct run *run)
{
    const struct adjust_contrast *contrast = (const struct adjust_contrast *)run->state;
    unsigned groups = (unsigned)ceil_div(contrast->shape.channels, JOIN_SIDE);

    LAUNCH_ITEMS(slot_kernel,
                 contrast->shape.images * CONTRAST_SLOTS * contrast->shape.channels,
                 *contrast);
    LAUNCH(join_kernel, dim3(groups, (unsigned)contrast->shape.images),
           dim3(JOIN_SIDE, JOIN_SIDE), 0, 0, *contrast);
    adjust(contrast);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each thread sums 64 pixels of a channel, the sums meet in atomicAdd",
      .algorithm = "pixel tasks, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .algorithm = "32 pixel slots, fixed tree",
      .compute = compute_ordered },
};

CUDA_TWIN(adjust_contrast, 1, variants, NULL);
