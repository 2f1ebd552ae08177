/* Input gradient of a 3x3 convolution; workloads/conv_dgrad.c defines the operation.
 * `ordered` adds in the CPU's order, so it has the CPU's bits.  The variants of cuDNN
 * read dy and w as (image, channel, row, column), which setup makes once; every iteration
 * brings dx back into the workload's order. */
#include "cuda/cudnn/conv_chosen.h"
#include "cuda/cudnn/convolution.h"
#include "cuda/cudnn/usable.h"
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/layout.h"
#include "workloads/conv_dgrad.h"

enum {
    RUN_PIXELS = 4, /* neighbours in a row of dx, of a thread: they share the weights */
    RUN_DEPTH = 4   /* channels of dy that are read at once */
};

struct dgrad_gpu : conv_dgrad {
    int64_t height, width; /* of dx */
    struct cudnn_conv cudnn;
};

/* A thread computes what an upstream pixel passes on through one tap to one channel. */
__global__ static void scatter_kernel(struct dgrad_gpu conv)
{
    const struct dgrad_shape *s = &conv.shape;
    int64_t in = s->in_channels, out = s->out_channels;

    KERNEL_FOR(i, s->images * s->height * s->width * DGRAD_TAPS * in)
    {
        int64_t c = i % in, tap = i / in % DGRAD_TAPS, pixel = i / in / DGRAD_TAPS;
        int64_t row = dgrad_landing(pixel / s->width % s->height, tap / DGRAD_SIDE,
                                    s->stride, s->height);
        int64_t column =
            dgrad_landing(pixel % s->width, tap % DGRAD_SIDE, s->stride, s->width);
        int64_t image = pixel / s->width / s->height;
        const float *dy = conv.dy + pixel * out, *w = conv.packed + tap * out * in + c;
        float sum = 0;

        if (row < 0 || column < 0) {
            continue;
        }
        for (int64_t k = 0; k < out; k++) {
            sum += dy[k] * w[k * in];
        }
        atomicAdd(&conv.dx[((image * conv.height + row) * conv.width + column) * in + c],
                  sum);
    }
}

static void weights_pack(const struct dgrad_gpu *conv)
{
    layout_transpose(conv->w, conv->packed, DGRAD_TAPS, conv->shape.in_channels,
                     conv->shape.out_channels);
}

static void compute_unordered(struct run *run)
{
    const struct dgrad_gpu *conv = (const struct dgrad_gpu *)run->state;
    const struct dgrad_shape *s = &conv->shape;
    int64_t products = s->images * s->height * s->width * DGRAD_TAPS * s->in_channels;

    weights_pack(conv);
    CUDA_TRY(cudaMemsetAsync(
        conv->dx, 0,
        (size_t)(s->images * conv->height * conv->width * s->in_channels) *
            sizeof(float)));
    LAUNCH_ITEMS(scatter_kernel, products, *conv);
}

/* The upstream pixels whose tap TAP lands at each of RUN_PIXELS neighbours from (ROW,
 * COLUMN) on, as rows of dy; NULL where there is none. */
__device__ static void run_origins(const struct dgrad_gpu *conv, int64_t tap,
                                   int64_t image, int64_t row, int64_t column,
                                   const float **ret_dy)
{
    const struct dgrad_shape *s = &conv->shape;
    int64_t h = dgrad_origin(row, tap / DGRAD_SIDE, s->stride, s->height);

    for (int64_t i = 0; i < RUN_PIXELS; i++) {
        int64_t w = dgrad_origin(column + i, tap % DGRAD_SIDE, s->stride, s->width);

        ret_dy[i] = h < 0 || w < 0 ? NULL
                                   : conv->dy + ((image * s->height + h) * s->width + w) *
                                                    s->out_channels;
    }
}

/* Adds to the neighbours' sums what one tap passes on, channel after channel. */
__device__ static void run_add(const struct dgrad_shape *s, const float **dy,
                               const float *w, float *sum)
{
    for (int64_t k = 0; k < s->out_channels; k += RUN_DEPTH) {
        float w0 = w[k * s->in_channels], w1 = w[(k + 1) * s->in_channels];
        float w2 = w[(k + 2) * s->in_channels], w3 = w[(k + 3) * s->in_channels];

        for (int64_t i = 0; i < RUN_PIXELS; i++) {
            float4 gradient;

            if (!dy[i]) {
                continue;
            }
            gradient = *(const float4 *)(dy[i] + k);
            sum[i] += gradient.x * w0;
            sum[i] += gradient.y * w1;
            sum[i] += gradient.z * w2;
            sum[i] += gradient.w * w3;
        }
    }
}

__global__ static void gather_kernel(struct dgrad_gpu conv, int64_t runs)
{
    int64_t in = conv.shape.in_channels, out = conv.shape.out_channels;

    KERNEL_FOR(i, conv.shape.images * conv.height * runs * in)
    {
        int64_t c = i % in, column = i / in % runs * RUN_PIXELS;
        int64_t row = i / in / runs % conv.height, image = i / in / runs / conv.height;
        const float *dy[RUN_PIXELS];
        float sum[RUN_PIXELS] = { 0, 0, 0, 0 };
        float *dx =
            conv.dx + ((image * conv.height + row) * conv.width + column) * in + c;

        for (int64_t tap = 0; tap < DGRAD_TAPS; tap++) {
            run_origins(&conv, tap, image, row, column, dy);
            run_add(&conv.shape, dy, conv.packed + tap * out * in + c, sum);
        }
        for (int64_t p = 0; p < RUN_PIXELS && column + p < conv.width; p++) {
            dx[p * in] = sum[p];
        }
    }
}

static void compute_ordered(struct run *run)
{
    const struct dgrad_gpu *conv = (const struct dgrad_gpu *)run->state;
    int64_t runs = ceil_div(conv->width, RUN_PIXELS);

    weights_pack(conv);
    LAUNCH_ITEMS(gather_kernel,
                 conv->shape.images * conv->height * runs * conv->shape.in_channels,
                 *conv, runs);
}

static void compute_cudnn(struct run *run)
{
    const struct dgrad_gpu *conv = (const struct dgrad_gpu *)run->state;

    cudnn_conv_compute(run, &conv->cudnn);
    layout_transpose((const float *)conv->cudnn.x, conv->dx, conv->shape.images,
                     conv->shape.in_channels, conv->height * conv->width);
}

static void cudnn_setup(struct run *run, struct dgrad_gpu *conv)
{
    const struct dgrad_shape *s = &conv->shape;
    int64_t w_elements = DGRAD_TAPS * s->in_channels * s->out_channels;
    int64_t y_elements = s->images * s->height * s->width * s->out_channels;
    int64_t x_elements = s->images * conv->height * conv->width * s->in_channels;
    struct cudnn_conv *cudnn = &conv->cudnn;

    cudnn->pass = CUDNN_BACKWARD_DATA;
    cudnn->images = (int)s->images;
    cudnn->height = (int)conv->height;
    cudnn->width = (int)conv->width;
    cudnn->in_channels = (int)s->in_channels;
    cudnn->out_channels = (int)s->out_channels;
    cudnn->side = DGRAD_SIDE;
    cudnn->stride = (int)s->stride;
    cudnn->groups = 1;
    cudnn->dtype = run->dtype;
    cudnn->arithmetic = CUDNN_ARITHMETIC_FMA;
    cudnn_conv_describe(run, cudnn);
    cudnn->x = run_alloc(run, (size_t)x_elements * sizeof(float));
    cudnn->w = run_alloc(run, (size_t)w_elements * sizeof(float));
    cudnn->y = run_alloc(run, (size_t)y_elements * sizeof(float));
    layout_transpose(conv->dy, (float *)cudnn->y, s->images, s->height * s->width,
                     s->out_channels);
    layout_reverse(conv->w, (float *)cudnn->w, DGRAD_TAPS, s->in_channels,
                   s->out_channels);
    cudnn_conv_take_variant(run, cudnn);
}

static void setup(struct run *run)
{
    const struct dgrad_shape *s = (const struct dgrad_shape *)run->size->params;
    struct dgrad_gpu *conv = (struct dgrad_gpu *)run_host_alloc(sizeof *conv);

    conv_dgrad_tensors(run, conv);
    conv->height = s->height * s->stride;
    conv->width = s->width * s->stride;
    if (run->variant->compute == compute_cudnn) {
        cudnn_setup(run, conv);
    } else {
        conv->packed = run_alloc_f32(run, DGRAD_TAPS * s->in_channels * s->out_channels);
    }
    run->state = conv;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each upstream pixel adds to the nine pixels it reaches with atomicAdd",
      .algorithm = "scatter, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .algorithm = "gather, taps in row-major order",
      .compute = compute_ordered },
    { .name = "algo_0",
      .summary = "cuDNN's CUDNN_CONVOLUTION_BWD_DATA_ALGO_0 itself",
      .models = "cudnnConvolutionBackwardData, listed by cuDNN as not reproducible",
      .algorithm = "CUDNN_CONVOLUTION_BWD_DATA_ALGO_0",
      .claim = "non-deterministic",
      .compute = compute_cudnn,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
    { .name = "algo_1",
      .summary = "cuDNN's CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 itself",
      .models = "what TF_CUDNN_DETERMINISTIC and TF_DETERMINISTIC_OPS select",
      .algorithm = "CUDNN_CONVOLUTION_BWD_DATA_ALGO_1",
      .claim = "deterministic",
      .compute = compute_cudnn,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
    { .name = "autotune",
      .summary = "the algorithm of cuDNN that was the fastest in this process",
      .models = "TensorFlow's and PyTorch's benchmarking: "
                "cudnnFindConvolutionBackwardDataAlgorithmEx",
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
    const struct dgrad_shape *s = (const struct dgrad_shape *)run->size->params;
    struct conv_chosen conv = {};

    conv.pass = CUDNN_BACKWARD_DATA;
    conv.images = s->images;
    conv.height = s->height;
    conv.width = s->width;
    conv.in_channels = s->in_channels;
    conv.out_channels = s->out_channels;
    conv.branches = 1;
    conv.y = (const float *)inputs[0].data;
    conv.w = (const float *)inputs[1].data;
    conv_dgrad_reference(run, inputs, output, ret_expected, ret_bound);
    if (s->stride == 1) { /* cuDNN has neither an FFT nor Winograd's for others */
        conv_chosen_bounds(&conv, run, ret_bound);
    }
}

static const struct workload conv_dgrad_cuda = { .name = "conv_dgrad",
                                                 .version = 1,
                                                 .backend = "cuda",
                                                 WORKLOAD_VARIANTS(variants),
                                                 .setup = setup,
                                                 .reference = reference };
WORKLOAD_REGISTER(conv_dgrad_cuda);
