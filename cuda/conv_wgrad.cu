/* Weight gradient of a 3x3 convolution; workloads/conv_wgrad.c defines the operation.
 * `ordered` adds in the CPU's order, so it has the CPU's bits.  The variants of cuDNN
 * read x and dy as (image, channel, row, column), which setup makes once; every iteration
 * brings dw back into the workload's order. */
#include "cuda/cudnn/conv_chosen.h"
#include "cuda/cudnn/convolution.h"
#include "cuda/cudnn/usable.h"
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/layout.h"
#include "cuda/kernels/tree.h"
#include "workloads/conv_wgrad.h"

enum { TILE_IN = 4 /* input channels of a thread */ };

struct wgrad_gpu : conv_wgrad {
    struct cudnn_conv cudnn;
};

/* TILE_IN elements of dw, one below the other: (tap, in_channel …, out_channel). */
struct tile {
    int64_t tap, in_channel, out_channel;
};

__host__ __device__ static int64_t tile_count(const struct wgrad_gpu *conv)
{
    return conv->elements / TILE_IN;
}

__device__ static struct tile tile_of(const struct conv_shape *shape, int64_t i)
{
    struct tile tile;

    tile.out_channel = i % shape->out_channels;
    i /= shape->out_channels;
    tile.in_channel = i % (shape->in_channels / TILE_IN) * TILE_IN;
    tile.tap = i / (shape->in_channels / TILE_IN);
    return tile;
}

__device__ static int64_t tile_element(const struct conv_shape *shape, struct tile tile)
{
    return (tile.tap * shape->in_channels + tile.in_channel) * shape->out_channels +
           tile.out_channel;
}

__device__ static int64_t clamp_to(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Adds to SUM what one image contributes to TILE, pixel after pixel in row-major order.
 */
__device__ static void image_add(const struct wgrad_gpu *conv, struct tile tile,
                                 int64_t image, float *sum)
{
    const struct conv_shape *s = &conv->shape;
    int64_t down = tile.tap / CONV_SIDE - 1, right = tile.tap % CONV_SIDE - 1;
    int64_t end_row = clamp_to(s->height - down, 0, s->height);
    int64_t end_column = clamp_to(s->width - right, 0, s->width);

    for (int64_t h = clamp_to(-down, 0, s->height); h < end_row; h++) {
        for (int64_t w = clamp_to(-right, 0, s->width); w < end_column; w++) {
            int64_t pixel = (image * s->height + h) * s->width + w;
            float dy = conv->dy[pixel * s->out_channels + tile.out_channel];
            float4 x =
                *(const float4 *)(conv->x +
                                  (pixel + down * s->width + right) * s->in_channels +
                                  tile.in_channel);

            sum[0] += x.x * dy;
            sum[1] += x.y * dy;
            sum[2] += x.z * dy;
            sum[3] += x.w * dy;
        }
    }
}

/* A thread sums a tile over one image; images meet in atomicAdd. */
__global__ static void atomic_kernel(struct wgrad_gpu conv)
{
    KERNEL_FOR(i, conv.shape.images * tile_count(&conv))
    {
        struct tile tile = tile_of(&conv.shape, i % tile_count(&conv));
        float *to = conv.dw + tile_element(&conv.shape, tile);
        float sum[TILE_IN] = { 0, 0, 0, 0 };

        image_add(&conv, tile, i / tile_count(&conv), sum);
        for (int64_t c = 0; c < TILE_IN; c++) {
            atomicAdd(&to[c * conv.shape.out_channels], sum[c]);
        }
    }
}

static void compute_unordered(struct run *run)
{
    const struct wgrad_gpu *conv = (const struct wgrad_gpu *)run->state;

    CUDA_TRY(cudaMemsetAsync(conv->dw, 0, (size_t)conv->elements * sizeof(float)));
    LAUNCH_ITEMS(atomic_kernel, conv->shape.images * tile_count(conv), *conv);
}

/* A thread sums a tile over the images of a slot. */
__global__ static void slot_kernel(struct wgrad_gpu conv)
{
    KERNEL_FOR(i, CONV_SLOTS * tile_count(&conv))
    {
        int64_t slot = i / tile_count(&conv), images = conv.shape.images;
        struct tile tile = tile_of(&conv.shape, i % tile_count(&conv));
        float *to =
            conv.partials + slot * conv.elements + tile_element(&conv.shape, tile);
        float sum[TILE_IN] = { 0, 0, 0, 0 };

        for (int64_t image = slot * images / CONV_SLOTS;
             image < (slot + 1) * images / CONV_SLOTS; image++) {
            image_add(&conv, tile, image, sum);
        }
        for (int64_t c = 0; c < TILE_IN; c++) {
            to[c * conv.shape.out_channels] = sum[c];
        }
    }
}

__global__ static void join_kernel(struct wgrad_gpu conv)
{
    KERNEL_FOR(i, conv.elements)
    {
        conv.dw[i] = tree_sum_in_thread<CONV_SLOTS>(conv.partials + i, conv.elements);
    }
}

static void compute_ordered(struct run *run)
{
    const struct wgrad_gpu *conv = (const struct wgrad_gpu *)run->state;

    LAUNCH_ITEMS(slot_kernel, CONV_SLOTS * tile_count(conv), *conv);
    LAUNCH_ITEMS(join_kernel, conv->elements, *conv);
}

static void compute_cudnn(struct run *run)
{
    const struct wgrad_gpu *conv = (const struct wgrad_gpu *)run->state;

    cudnn_conv_compute(run, &conv->cudnn);
    layout_reverse((const float *)conv->cudnn.w, conv->dw, conv->shape.out_channels,
                   conv->shape.in_channels, CONV_TAPS);
}

static void cudnn_setup(struct run *run, struct wgrad_gpu *conv)
{
    const struct conv_shape *s = &conv->shape;
    int64_t pixels = s->height * s->width;
    size_t x_bytes = (size_t)(s->images * pixels * s->in_channels) * sizeof(float);
    size_t y_bytes = (size_t)(s->images * pixels * s->out_channels) * sizeof(float);
    struct cudnn_conv *cudnn = &conv->cudnn;

    cudnn->pass = CUDNN_BACKWARD_FILTER;
    cudnn->images = (int)s->images;
    cudnn->height = (int)s->height;
    cudnn->width = (int)s->width;
    cudnn->in_channels = (int)s->in_channels;
    cudnn->out_channels = (int)s->out_channels;
    cudnn->side = CONV_SIDE;
    cudnn->stride = cudnn->groups = 1;
    cudnn->dtype = run->dtype;
    cudnn->arithmetic = CUDNN_ARITHMETIC_FMA;
    cudnn_conv_describe(run, cudnn);
    cudnn->x = run_alloc(run, x_bytes);
    cudnn->y = run_alloc(run, y_bytes);
    cudnn->w = run_alloc(run, (size_t)conv->elements * sizeof(float));
    layout_transpose(conv->x, (float *)cudnn->x, s->images, pixels, s->in_channels);
    layout_transpose(conv->dy, (float *)cudnn->y, s->images, pixels, s->out_channels);
    cudnn_conv_take_variant(run, cudnn);
}

static void setup(struct run *run)
{
    struct wgrad_gpu *conv = (struct wgrad_gpu *)run_host_alloc(sizeof *conv);

    conv_wgrad_tensors(run, conv);
    if (run->variant->compute == compute_cudnn) {
        cudnn_setup(run, conv);
    } else {
        conv->partials = run_alloc_f32(run, CONV_SLOTS * conv->elements);
    }
    run->state = conv;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "a thread sums one image of four weights; images meet in atomicAdd",
      .algorithm = "partial per image, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .algorithm = "32 image slots, fixed tree",
      .compute = compute_ordered },
    { .name = "algo_0",
      .summary = "cuDNN's CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 itself",
      .models = "cudnnConvolutionBackwardFilter, listed by cuDNN as not reproducible",
      .algorithm = "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0",
      .claim = "non-deterministic",
      .compute = compute_cudnn,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
    { .name = "algo_1",
      .summary = "cuDNN's CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 itself",
      .models = "what TF_CUDNN_DETERMINISTIC and TF_DETERMINISTIC_OPS select",
      .algorithm = "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1",
      .claim = "deterministic",
      .compute = compute_cudnn,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
    { .name = "algo_3",
      .summary = "cuDNN's CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3 itself",
      .models = "cudnnConvolutionBackwardFilter, listed by cuDNN as not reproducible",
      .algorithm = "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3",
      .claim = "non-deterministic",
      .compute = compute_cudnn,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
    { .name = "autotune",
      .summary = "the algorithm of cuDNN that was the fastest in this process",
      .models = "TensorFlow's and PyTorch's benchmarking: "
                "cudnnFindConvolutionBackwardFilterAlgorithmEx",
      .algorithm = "the fastest that cuDNN finds",
      .control = true,
      .kind = "choice", /* whatever the algorithms do: another may be the fastest */
      .compute = compute_cudnn,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
};

/* The CPU's, and the bounds of what the search may have found. */
static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct conv_shape *s = (const struct conv_shape *)run->size->params;
    struct conv_chosen conv = {};

    conv.pass = CUDNN_BACKWARD_FILTER;
    conv.images = s->images;
    conv.height = s->height;
    conv.width = s->width;
    conv.in_channels = s->in_channels;
    conv.out_channels = s->out_channels;
    conv.branches = 1;
    conv.x = (const float *)inputs[0].data;
    conv.y = (const float *)inputs[1].data;
    conv_wgrad_reference(run, inputs, output, ret_expected, ret_bound);
    conv_chosen_bounds(&conv, run, ret_bound);
}

static const struct workload conv_wgrad_cuda = { .name = "conv_wgrad",
                                                 .version = 1,
                                                 .backend = "cuda",
                                                 WORKLOAD_VARIANTS(variants),
                                                 .setup = setup,
                                                 .reference = reference };
WORKLOAD_REGISTER(conv_wgrad_cuda);
