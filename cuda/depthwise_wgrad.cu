/* Filter gradient of a depthwise 3x3 convolution; workloads/depthwise_wgrad.c defines the
 * operation.  `ordered` adds in the CPU's order, so it has the CPU's bits.  For cuDNN it
 * is a convolution with a group for each channel; setup brings x and dy into cuDNN's
 * order once, and every iteration dw out of it. */
#include "cuda/cudnn/convolution.h"
#include "cuda/cudnn/usable.h"
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/layout.h"
#include "cuda/kernels/tree.h"
#include "workloads/depthwise_wgrad.h"

struct depthwise_gpu : depthwise_wgrad {
    struct cudnn_conv cudnn;
};

/* What rows [BEGIN, END) of all images' pixels contribute to ELEMENT of dw, pixel after
 * pixel. */
__device__ static float rows_sum(const struct depthwise_gpu *conv, int64_t element,
                                 int64_t begin, int64_t end)
{
    const struct depthwise_shape *s = &conv->shape;
    int64_t tap = element / s->channels, c = element % s->channels;
    int64_t down = tap / DEPTHWISE_SIDE - 1, right = tap % DEPTHWISE_SIDE - 1;
    int64_t first = right < 0 ? 1 : 0, last = s->width - (right > 0 ? 1 : 0);
    float sum = 0;

    for (int64_t row = begin; row < end; row++) {
        int64_t h = row % s->height + down;
        const float *dy = conv->dy + row * s->width * s->channels + c;
        const float *x = conv->x + ((row + down) * s->width + right) * s->channels + c;

        if (h < 0 || h >= s->height) {
            continue;
        }
        for (int64_t w = first; w < last; w++) {
            sum += x[w * s->channels] * dy[w * s->channels];
        }
    }
    return sum;
}

/* A thread sums a row of pixels; rows meet in atomicAdd. */
__global__ static void atomic_kernel(struct depthwise_gpu conv)
{
    KERNEL_FOR(i, conv.shape.images * conv.shape.height * conv.elements)
    {
        int64_t row = i / conv.elements, element = i % conv.elements;

        atomicAdd(&conv.dw[element], rows_sum(&conv, element, row, row + 1));
    }
}

static void compute_unordered(struct run *run)
{
    const struct depthwise_gpu *conv = (const struct depthwise_gpu *)run->state;

    CUDA_TRY(cudaMemsetAsync(conv->dw, 0, (size_t)conv->elements * sizeof(float)));
    LAUNCH_ITEMS(atomic_kernel, conv->shape.images * conv->shape.height * conv->elements,
                 *conv);
}

__global__ static void slot_kernel(struct depthwise_gpu conv)
{
    int64_t rows = conv.shape.images * conv.shape.height;

    KERNEL_FOR(i, DEPTHWISE_SLOTS * conv.elements)
    {
        int64_t slot = i / conv.elements;

        conv.partials[i] =
            rows_sum(&conv, i % conv.elements, slot * rows / DEPTHWISE_SLOTS,
                     (slot + 1) * rows / DEPTHWISE_SLOTS);
    }
}

__global__ static void join_kernel(struct depthwise_gpu conv)
{
    KERNEL_FOR(i, conv.elements)
    {
        conv.dw[i] =
            tree_sum_in_thread<DEPTHWISE_SLOTS>(conv.partials + i, conv.elements);
    }
}

static void compute_ordered(struct run *run)
{
    const struct depthwise_gpu *conv = (const struct depthwise_gpu *)run->state;

    LAUNCH_ITEMS(slot_kernel, DEPTHWISE_SLOTS * conv->elements, *conv);
    LAUNCH_ITEMS(join_kernel, conv->elements, *conv);
}

static void compute_cudnn(struct run *run)
{
    const struct depthwise_gpu *conv = (const struct depthwise_gpu *)run->state;

    cudnn_conv_compute(run, &conv->cudnn);
    layout_transpose((const float *)conv->cudnn.w, conv->dw, 1, conv->shape.channels,
                     DEPTHWISE_TAPS);
}

static void cudnn_setup(struct run *run, struct depthwise_gpu *conv)
{
    const struct depthwise_shape *s = &conv->shape;
    int64_t pixels = s->height * s->width;
    size_t bytes = (size_t)(s->images * pixels * s->channels) * sizeof(float);
    struct cudnn_conv *cudnn = &conv->cudnn;

    cudnn->pass = CUDNN_BACKWARD_FILTER;
    cudnn->images = (int)s->images;
    cudnn->height = (int)s->height;
    cudnn->width = (int)s->width;
    cudnn->in_channels = cudnn->out_channels = cudnn->groups = (int)s->channels;
    cudnn->side = DEPTHWISE_SIDE;
    cudnn->stride = 1;
    cudnn->dtype = run->dtype;
    cudnn->arithmetic = CUDNN_ARITHMETIC_FMA;
    cudnn_conv_describe(run, cudnn);
    cudnn->x = run_alloc(run, bytes);
    cudnn->y = run_alloc(run, bytes);
    cudnn->w = run_alloc(run, (size_t)conv->elements * sizeof(float));
    layout_transpose(conv->x, (float *)cudnn->x, s->images, pixels, s->channels);
    layout_transpose(conv->dy, (float *)cudnn->y, s->images, pixels, s->channels);
    cudnn_conv_take_variant(run, cudnn);
}

static void setup(struct run *run)
{
    struct depthwise_gpu *conv = (struct depthwise_gpu *)run_host_alloc(sizeof *conv);

    depthwise_wgrad_tensors(run, conv);
    if (run->variant->compute == compute_cudnn) {
        cudnn_setup(run, conv);
    } else {
        conv->partials = run_alloc_f32(run, DEPTHWISE_SLOTS * conv->elements);
    }
    run->state = conv;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "a thread sums a row of pixels, rows meet in atomicAdd",
      .algorithm = "partial per row, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .algorithm = "32 row slots, fixed tree",
      .compute = compute_ordered },
    { .name = "algo_0",
      .summary = "cuDNN's grouped convolution, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0",
      .models = "cudnnConvolutionBackwardFilter, listed by cuDNN as not reproducible",
      .algorithm = "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0",
      .claim = "non-deterministic",
      .compute = compute_cudnn,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
    { .name = "algo_1",
      .summary = "cuDNN's grouped convolution, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1",
      .models = "what enable_op_determinism selects from TF 2.10",
      .algorithm = "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1",
      .claim = "deterministic",
      .compute = compute_cudnn,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
    { .name = "algo_3",
      .summary = "cuDNN's grouped convolution, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3",
      .models = "cudnnConvolutionBackwardFilter, listed by cuDNN as not reproducible",
      .algorithm = "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3",
      .claim = "non-deterministic",
      .compute = compute_cudnn,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
};

CUDA_TWIN(depthwise_wgrad, 1, variants, setup);
