/* Gradient of a 3x3 convolution (padding 1) with respect to its input: each pixel of the
 * upstream gradient reaches the 3x3 pixels that it was computed from,
 * dx[n, s*h+kh-1, s*w+kw-1, c] += dy[n,h,w,k] * w[kh,kw,c,k] for stride s.
 * The same operation, forwards, is a transposed convolution ("deconvolution"): size
 * `deconv` has its usual stride of 2. */
#include "workloads/conv_dgrad.h"

#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

enum { TILE = 16 };

typedef float lanes
    __attribute__((vector_size(TILE * sizeof(float)), aligned(sizeof(float)), may_alias));

static void weights_pack(const struct conv_dgrad *conv)
{
    int64_t in = conv->shape.in_channels, out = conv->shape.out_channels;

    for (int64_t tap = 0; tap < DGRAD_TAPS; tap++) {
        for (int64_t c = 0; c < in; c++) {
            for (int64_t k = 0; k < out; k++) {
                conv->packed[(tap * out + k) * in + c] =
                    conv->w[(tap * in + c) * out + k];
            }
        }
    }
}

/* Adds to the tile at SUM what the upstream pixel DY passes on through one tap, channel
 * after channel; WEIGHTS are the tap's, from the tile's first channel on. */
static void tile_add(const struct dgrad_shape *shape, const float *dy,
                     const float *weights, lanes *sum)
{
    lanes total = *sum;

    for (int64_t k = 0; k < shape->out_channels; k++) {
        total += dy[k] * *(const lanes *)(weights + k * shape->in_channels);
    }
    *sum = total;
}

static void pixel_scatter(const struct conv_dgrad *conv, int64_t image, int64_t h,
                          int64_t w)
{
    const struct dgrad_shape *s = &conv->shape;
    const float *dy =
        conv->dy + ((image * s->height + h) * s->width + w) * s->out_channels;

    for (int64_t tap = 0; tap < DGRAD_TAPS; tap++) {
        int64_t row = dgrad_landing(h, tap / DGRAD_SIDE, s->stride, s->height);
        int64_t column = dgrad_landing(w, tap % DGRAD_SIDE, s->stride, s->width);
        float *dx =
            conv->dx +
            ((image * s->height * s->stride + row) * s->width * s->stride + column) *
                s->in_channels;

        if (row < 0 || column < 0) {
            continue;
        }
        for (int64_t c = 0; c < s->in_channels; c += TILE) {
            lanes part = { 0 };

            tile_add(s, dy, conv->packed + tap * s->out_channels * s->in_channels + c,
                     &part);
            for (int64_t i = 0; i < TILE; i++) {
#pragma omp atomic
                dx[c + i] += part[i];
            }
        }
    }
}

static void compute_unordered(struct run *run)
{
    const struct conv_dgrad *conv = run->state;
    const struct dgrad_shape *s = &conv->shape;
    int64_t rows = s->images * s->height;
    int64_t row_elements = s->stride * s->stride * s->width * s->in_channels;

    weights_pack(conv);
#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for
        for (int64_t row = 0; row < rows; row++) {
            memset(conv->dx + row * row_elements, 0,
                   (size_t)row_elements * sizeof(float));
        }
        /* Neighbouring rows, which share pixels of dx, go in opposite directions: two
         * threads meet somewhere, and nanoseconds decide where. */
#pragma omp for schedule(dynamic, 1)
        for (int64_t row = 0; row < rows; row++) {
            for (int64_t i = 0; i < s->width; i++) {
                pixel_scatter(conv, row / s->height, row % s->height,
                              row % 2 ? s->width - 1 - i : i);
            }
        }
    }
}

/* One pixel of dx: its taps in row-major order. */
static void pixel_gather(const struct conv_dgrad *conv, int64_t image, int64_t row,
                         int64_t column, float *dx)
{
    const struct dgrad_shape *s = &conv->shape;

    for (int64_t c = 0; c < s->in_channels; c += TILE) {
        lanes sum = { 0 };

        for (int64_t tap = 0; tap < DGRAD_TAPS; tap++) {
            int64_t h = dgrad_origin(row, tap / DGRAD_SIDE, s->stride, s->height);
            int64_t w = dgrad_origin(column, tap % DGRAD_SIDE, s->stride, s->width);

            if (h < 0 || w < 0) {
                continue;
            }
            tile_add(
                s, conv->dy + ((image * s->height + h) * s->width + w) * s->out_channels,
                conv->packed + tap * s->out_channels * s->in_channels + c, &sum);
        }
        *(lanes *)(dx + c) = sum;
    }
}

static void compute_ordered(struct run *run)
{
    const struct conv_dgrad *conv = run->state;
    const struct dgrad_shape *s = &conv->shape;
    int64_t height = s->height * s->stride, width = s->width * s->stride;

    weights_pack(conv);
#pragma omp parallel for num_threads(run->threads)
    for (int64_t row = 0; row < s->images * height; row++) {
        for (int64_t column = 0; column < width; column++) {
            pixel_gather(conv, row / height, row % height, column,
                         conv->dx + (row * width + column) * s->in_channels);
        }
    }
}

static void setup(struct run *run)
{
    const struct dgrad_shape *s = run->size->params;
    struct conv_dgrad *conv = run_host_alloc(sizeof *conv);

    conv_dgrad_tensors(run, conv);
    conv->packed = run_alloc_f32(run, DGRAD_TAPS * s->in_channels * s->out_channels);
    run->state = conv;
}

void conv_dgrad_reference(const struct run *run, const struct tensor *inputs,
                          const struct tensor *output, double *ret_expected,
                          double *ret_bound)
{
    const struct dgrad_shape *s = run->size->params;
    const float *dy = inputs[0].data, *weights = inputs[1].data;
    int64_t pixels = s->height * s->width;
    struct exact_sums exact =
        sums_begin(run, DGRAD_TAPS * s->out_channels, output, ret_expected, ret_bound);

    for (int64_t pixel = 0; pixel < s->images * pixels; pixel++) {
        for (int64_t tap = 0; tap < DGRAD_TAPS; tap++) {
            int64_t h = pixel % pixels / s->width, w = pixel % s->width;
            int64_t row = h * s->stride + tap / DGRAD_SIDE - 1;
            int64_t column = w * s->stride + tap % DGRAD_SIDE - 1;
            int64_t to =
                (pixel / pixels * output->shape[1] + row) * output->shape[2] + column;

            if (row < 0 || row >= output->shape[1] || column < 0 ||
                column >= output->shape[2]) {
                continue;
            }
            for (int64_t c = 0; c < s->in_channels; c++) {
                sums_add_products(&exact, to * s->in_channels + c,
                                  dy + pixel * s->out_channels,
                                  weights + (tap * s->in_channels + c) * s->out_channels,
                                  s->out_channels);
            }
        }
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each upstream pixel adds to the nine pixels it came from, atomically",
      .models = "cuDNN CUDNN_CONVOLUTION_BWD_DATA_ALGO_0: products meet in atomicAdd",
      .algorithm = "scatter, atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "each pixel collects from its nine taps in row-major order",
      .models = "cuDNN CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, selected by "
                "TF_CUDNN_DETERMINISTIC and by TF_DETERMINISTIC_OPS",
      .algorithm = "gather, taps in row-major order",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "dy[16,14,14,32] w[3,3,16,32] dx[16,14,14,16]",
      &(const struct dgrad_shape){ 16, 14, 14, 16, 32, 1 } },
    { "deconv", "x[16,14,14,32] w[3,3,16,32] y[16,28,28,16], forwards with stride 2",
      &(const struct dgrad_shape){ 16, 14, 14, 16, 32, 2 } },
    { "medium", "dy[64,28,28,64] w[3,3,64,64] dx[64,28,28,64]",
      &(const struct dgrad_shape){ 64, 28, 28, 64, 64, 1 } },
    { "large", "dy[128,56,56,64] w[3,3,64,64] dx[128,56,56,64]",
      &(const struct dgrad_shape){ 128, 56, 56, 64, 64, 1 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_PR(24747, "TF_CUDNN_DETERMINISTIC selects deterministic algorithms",
                  "merged 2020-06", "TF 1.14"),
    TENSORFLOW_PR(25796, "tests of TF_CUDNN_DETERMINISTIC", "merged 2020-06", "TF 1.14"),
    TENSORFLOW_PR(34951, "a list of deterministic algorithms instead of one",
                  "merged 2020-06", "TF 2.2"),
    TENSORFLOW_ISSUE(18096, "asks for a way to configure cuDNN's determinism",
                     "open 2020-06", "TF 1.14"),
    CUDNN_ODDS_AND_ENDS("names BackwardData with ALGO_0 as non-deterministic"),
    GTC_SLIDES("slide 24", "data gradients", NULL),
    GTC_SLIDES("slide 47", "possible issues with deconvolution in inference", NULL),
    STACK_OVERFLOW("names ALGO_0 of BackwardData, as of cuDNN 8.0.1"),
};

static const struct workload conv_dgrad = {
    .name = "conv_dgrad",
    .version = 1,
    .title = "cuDNN convolution backprop to data gradients",
    .summary = "input gradient of a 3x3 convolution; also as transposed convolution",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of dx",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = conv_dgrad_reference,
};
WORKLOAD_REGISTER(conv_dgrad);
