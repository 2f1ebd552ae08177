/* Gradient of a depthwise 3x3 convolution (stride 1, padding 1, multiplier 1) with
 * respect to its filter: dw[kh,kw,c] = sum over n,h,w of x[n, h+kh-1, w+kw-1, c] *
 * dy[n,h,w,c]. */
#include "workloads/depthwise_wgrad.h"

#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/shared/tree.h"
#include "workloads/workload.h"

/* The pixel of x that tap TAP of the upstream pixel at (H, W) of IMAGE sees; NULL
 * outside.
 */
static const float *tap_pixel(const struct depthwise_wgrad *conv, int64_t image,
                              int64_t h, int64_t w, int64_t tap)
{
    const struct depthwise_shape *s = &conv->shape;

    h += tap / DEPTHWISE_SIDE - 1;
    w += tap % DEPTHWISE_SIDE - 1;
    if (h < 0 || h >= s->height || w < 0 || w >= s->width) {
        return NULL;
    }
    return conv->x + ((image * s->height + h) * s->width + w) * s->channels;
}

static void pixel_add_atomically(const struct depthwise_wgrad *conv, int64_t image,
                                 int64_t h, int64_t w, bool down)
{
    const struct depthwise_shape *s = &conv->shape;
    const float *dy = conv->dy + ((image * s->height + h) * s->width + w) * s->channels;

    for (int64_t tap = 0; tap < DEPTHWISE_TAPS; tap++) {
        const float *x = tap_pixel(conv, image, h, w, tap);

        for (int64_t i = 0; x && i < s->channels; i++) {
            int64_t c = down ? s->channels - 1 - i : i;
            float term = x[c] * dy[c];

#pragma omp atomic
            conv->dw[tap * s->channels + c] += term;
        }
    }
}

/* Neighbouring rows go in opposite directions: two threads meet somewhere, and where
 * depends on nanoseconds. */
static void compute_unordered(struct run *run)
{
    const struct depthwise_wgrad *conv = run->state;
    const struct depthwise_shape *s = &conv->shape;

    memset(conv->dw, 0, (size_t)conv->elements * sizeof(float));
#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t row = 0; row < s->images * s->height; row++) {
        for (int64_t w = 0; w < s->width; w++) {
            pixel_add_atomically(conv, row / s->height, row % s->height, w, row % 2);
        }
    }
}

static void pixel_add(const struct depthwise_wgrad *conv, int64_t image, int64_t h,
                      int64_t w, float *dw)
{
    const struct depthwise_shape *s = &conv->shape;
    const float *dy = conv->dy + ((image * s->height + h) * s->width + w) * s->channels;

    for (int64_t tap = 0; tap < DEPTHWISE_TAPS; tap++) {
        const float *x = tap_pixel(conv, image, h, w, tap);
        float *to = dw + tap * s->channels;

        if (!x) {
            continue;
        }
#pragma omp simd
        for (int64_t c = 0; c < s->channels; c++) {
            to[c] += x[c] * dy[c];
        }
    }
}

static void compute_ordered(struct run *run)
{
    const struct depthwise_wgrad *conv = run->state;
    const struct depthwise_shape *s = &conv->shape;
    int64_t rows = s->images * s->height;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for schedule(dynamic, 1)
        for (int64_t slot = 0; slot < DEPTHWISE_SLOTS; slot++) {
            float *partial = conv->partials + slot * conv->elements;

            memset(partial, 0, (size_t)conv->elements * sizeof(float));
            for (int64_t row = slot * rows / DEPTHWISE_SLOTS;
                 row < (slot + 1) * rows / DEPTHWISE_SLOTS; row++) {
                for (int64_t w = 0; w < s->width; w++) {
                    pixel_add(conv, row / s->height, row % s->height, w, partial);
                }
            }
        }
        tree_join(conv->dw, conv->elements, conv->partials, DEPTHWISE_SLOTS,
                  conv->elements);
    }
}

static void setup(struct run *run)
{
    struct depthwise_wgrad *conv = run_host_alloc(sizeof *conv);

    depthwise_wgrad_tensors(run, conv);
    conv->partials = run_alloc_f32(run, DEPTHWISE_SLOTS * conv->elements);
    run->state = conv;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct depthwise_shape *s = run->size->params;
    const float *x = inputs[0].data, *dy = inputs[1].data;
    int64_t pixels = s->height * s->width;
    struct exact_sums exact =
        sums_begin(run, s->images * pixels, output, ret_expected, ret_bound);

    for (int64_t i = 0; i < tensor_elements(output); i++) {
        int64_t down = i / s->channels / DEPTHWISE_SIDE - 1,
                right = i / s->channels % DEPTHWISE_SIDE - 1;
        int64_t c = i % s->channels;

        for (int64_t at = 0; at < s->images * pixels; at++) {
            int64_t row = at % pixels / s->width + down, column = at % s->width + right;
            double term;

            if (row < 0 || row >= s->height || column < 0 || column >= s->width) {
                continue;
            }
            term =
                (double)x[(at / pixels * pixels + row * s->width + column) * s->channels +
                          c] *
                dy[at * s->channels + c];
            sums_add(&exact, i, term);
        }
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "every product is added to its filter element with an atomic add",
      .models = "TensorFlow's own CUDA kernel for the depthwise filter gradient",
      .algorithm = "atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "32 fixed groups of rows, joined by a fixed tree",
      .models =
          "cuDNN grouped convolution, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, selected "
          "by enable_op_determinism from TF 2.10",
      .algorithm = "32 row slots, fixed tree",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "x[16,14,14,64] dy[16,14,14,64] dw[3,3,64]",
      &(const struct depthwise_shape){ 16, 14, 14, 64 } },
    { "medium", "x[64,28,28,128] dy[64,28,28,128] dw[3,3,128]",
      &(const struct depthwise_shape){ 64, 28, 28, 128 } },
    { "large", "x[128,56,56,256] dy[128,56,56,256] dw[3,3,256]",
      &(const struct depthwise_shape){ 128, 56, 56, 256 } },
};

static const struct workload_reference references[] = {
    GITHUB_ISSUE("framework-reproducibility", "NVIDIA/framework-reproducibility", 26,
                 "asks for a deterministic depthwise gradient", NULL, "TF 2.10"),
    TENSORFLOW_ISSUE(47174, "EfficientNet is not reproducible on GPU", "open 2023-07",
                     NULL),
    TENSORFLOW_PR(51920, "raises when determinism is asked for, since TF 2.7",
                  "merged 2023-07", NULL),
    TENSORFLOW_PR(54119, "a variable that turns that exception off, in TF 2.9",
                  "merged 2023-07", NULL),
    TENSORFLOW_PR(55657, "deterministic depthwise filter gradient through cuDNN",
                  "merged 2023-07", "TF 2.10"),
};

static const struct workload depthwise_wgrad = {
    .name = "depthwise_wgrad",
    .version = 1,
    .title = "tf.nn.depthwise_conv2d backprop to filter",
    .summary = "filter gradient of a depthwise 3x3 convolution",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of dw",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(depthwise_wgrad);
