/* Gradient of a 3x3 convolution (stride 1, padding 1) with respect to its weights:
 * dw[kh,kw,c,k] = sum over n,h,w of x[n, h+kh-1, w+kw-1, c] * dy[n,h,w,k]. */
#include "workloads/conv_wgrad.h"

#include <omp.h>
#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/shared/tree.h"
#include "workloads/workload.h"

enum { BAND_ROWS = 2 };

static int64_t weight_index(const struct conv_shape *shape, int64_t tap, int64_t channel)
{
    return (tap * shape->in_channels + channel) * shape->out_channels;
}

static int64_t pixel_index(const struct conv_shape *shape, int64_t image, int64_t row,
                           int64_t column)
{
    return (image * shape->height + row) * shape->width + column;
}

/* A tile is 4 input channels by 8 output channels of one tap of dw: it stays in registers
 * while the pixels go by. */
enum { TILE_IN = 4, TILE_OUT = 8 };

typedef float lanes __attribute__((vector_size(TILE_OUT * sizeof(float)),
                                   aligned(sizeof(float)), may_alias));

/* The pixels of the upstream gradient, of one image, that a tap of the weights sees. */
struct window {
    int64_t first_row, end_row, first_column, end_column;
};

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Adds to the tile at TO what WINDOW contributes, in row-major order.  X and DY point at
 * the tile's channels of the image's first pixel; the tap pairs a pixel of dy with the
 * pixel of x that lies MOVED pixels on. */
static void tile_add(const struct conv_shape *shape, const struct window *window,
                     const float *x, int64_t moved, const float *dy, float *to)
{
    int64_t out = shape->out_channels;
    lanes sum0 = *(lanes *)to, sum1 = *(lanes *)(to + out);
    lanes sum2 = *(lanes *)(to + 2 * out), sum3 = *(lanes *)(to + 3 * out);

    for (int64_t h = window->first_row; h < window->end_row; h++) {
        for (int64_t w = window->first_column; w < window->end_column; w++) {
            int64_t pixel = h * shape->width + w;
            const float *values = x + (pixel + moved) * shape->in_channels;
            lanes gradient = *(const lanes *)(dy + pixel * out);

            sum0 += values[0] * gradient;
            sum1 += values[1] * gradient;
            sum2 += values[2] * gradient;
            sum3 += values[3] * gradient;
        }
    }
    *(lanes *)to = sum0;
    *(lanes *)(to + out) = sum1;
    *(lanes *)(to + 2 * out) = sum2;
    *(lanes *)(to + 3 * out) = sum3;
}

/* Adds what rows [BEGIN, END) of the upstream gradient of one image contribute to DW,
 * pixel after pixel in row-major order. */
static void rows_add(const struct conv_wgrad *conv, int64_t image, int64_t begin,
                     int64_t end, float *dw)
{
    const struct conv_shape *shape = &conv->shape;
    int64_t first_pixel = image * shape->height * shape->width;
    const float *x = conv->x + first_pixel * shape->in_channels;
    const float *dy = conv->dy + first_pixel * shape->out_channels;

    for (int64_t tap = 0; tap < CONV_TAPS; tap++) {
        int64_t down = tap / CONV_SIDE - 1, right = tap % CONV_SIDE - 1;
        struct window window = {
            .first_row = clamp(-down, begin, end),
            .end_row = clamp(shape->height - down, begin, end),
            .first_column = clamp(-right, 0, shape->width),
            .end_column = clamp(shape->width - right, 0, shape->width),
        };
        int64_t moved = down * shape->width + right;

        for (int64_t c = 0; c < shape->in_channels; c += TILE_IN) {
            for (int64_t k = 0; k < shape->out_channels; k += TILE_OUT) {
                tile_add(shape, &window, x + c, moved, dy + k,
                         dw + weight_index(shape, tap, c) + k);
            }
        }
    }
}

/* Neighbouring tasks go in opposite directions: two threads that add at the same time
 * meet somewhere, and nanoseconds decide where. */
static void partial_add_atomically(const struct conv_wgrad *conv, const float *partial,
                                   bool down)
{
    for (int64_t i = 0; i < conv->elements; i++) {
        int64_t at = down ? conv->elements - 1 - i : i;

#pragma omp atomic
        conv->dw[at] += partial[at];
    }
}

static void compute_unordered(struct run *run)
{
    const struct conv_wgrad *conv = run->state;
    const struct conv_shape *shape = &conv->shape;
    int64_t bands = (shape->height + BAND_ROWS - 1) / BAND_ROWS;
    size_t bytes = (size_t)conv->elements * sizeof(float);

    memset(conv->dw, 0, bytes);
#pragma omp parallel num_threads(run->threads)
    {
        float *partial = conv->partials + omp_get_thread_num() * conv->elements;

#pragma omp for schedule(dynamic, 1)
        for (int64_t task = 0; task < shape->images * bands; task++) {
            int64_t begin = task % bands * BAND_ROWS, end = begin + BAND_ROWS;

            memset(partial, 0, bytes);
            rows_add(conv, task / bands, begin, end < shape->height ? end : shape->height,
                     partial);
            partial_add_atomically(conv, partial, task % 2);
        }
    }
}

static void compute_ordered(struct run *run)
{
    const struct conv_wgrad *conv = run->state;
    int64_t images = conv->shape.images;
    size_t bytes = (size_t)conv->elements * sizeof(float);

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for schedule(dynamic, 1)
        for (int64_t slot = 0; slot < CONV_SLOTS; slot++) {
            float *partial = conv->partials + slot * conv->elements;

            memset(partial, 0, bytes);
            for (int64_t image = slot * images / CONV_SLOTS;
                 image < (slot + 1) * images / CONV_SLOTS; image++) {
                rows_add(conv, image, 0, conv->shape.height, partial);
            }
        }
        tree_join(conv->dw, conv->elements, conv->partials, CONV_SLOTS, conv->elements);
    }
}

static void setup(struct run *run)
{
    struct conv_wgrad *conv = run_host_alloc(sizeof *conv);

    conv_wgrad_tensors(run, conv);
    conv->partials = run_alloc_f32(
        run, (run->threads > CONV_SLOTS ? run->threads : CONV_SLOTS) * conv->elements);
    run->state = conv;
}

void conv_wgrad_reference(const struct run *run, const struct tensor *inputs,
                          const struct tensor *output, double *ret_expected,
                          double *ret_bound)
{
    const struct conv_shape *s = run->size->params;
    const float *x = inputs[0].data, *dy = inputs[1].data;
    struct exact_sums exact = sums_begin(run, s->images * s->height * s->width, output,
                                         ret_expected, ret_bound);

    for (int64_t n = 0; n < s->images; n++) {
        for (int64_t h = 0; h < s->height; h++) {
            for (int64_t w = 0; w < s->width; w++) {
                const float *upstream = dy + pixel_index(s, n, h, w) * s->out_channels;

                for (int64_t tap = 0; tap < CONV_TAPS; tap++) {
                    int64_t row = h + tap / CONV_SIDE - 1,
                            column = w + tap % CONV_SIDE - 1;
                    const float *from;

                    if (row < 0 || row >= s->height || column < 0 || column >= s->width) {
                        continue;
                    }
                    from = x + pixel_index(s, n, row, column) * s->in_channels;
                    for (int64_t c = 0; c < s->in_channels; c++) {
                        sums_add_scaled(&exact, weight_index(s, tap, c), from[c],
                                        upstream, s->out_channels);
                    }
                }
            }
        }
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary =
          "each task convolves two rows of an image and adds them with atomic adds",
      .models = "cuDNN CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 and ALGO_3: the partial "
                "gradients of thread-blocks meet in atomicAdd",
      .algorithm = "partial per two rows, atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "32 fixed groups of images, joined by a fixed tree",
      .models = "cuDNN CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, selected by "
                "TF_CUDNN_DETERMINISTIC and by TF_DETERMINISTIC_OPS",
      .algorithm = "32 image slots, fixed tree",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "x[96,14,14,16] dy[96,14,14,32] dw[3,3,16,32]",
      &(const struct conv_shape){ 96, 14, 14, 16, 32 } },
    { "medium", "x[64,28,28,64] dy[64,28,28,64] dw[3,3,64,64]",
      &(const struct conv_shape){ 64, 28, 28, 64, 64 } },
    { "large", "x[128,56,56,64] dy[128,56,56,64] dw[3,3,64,64]",
      &(const struct conv_shape){ 128, 56, 56, 64, 64 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_PR(24747, "TF_CUDNN_DETERMINISTIC selects deterministic algorithms",
                  "merged 2020-06", "TF 1.14"),
    TENSORFLOW_PR(25796, "tests of TF_CUDNN_DETERMINISTIC", "merged 2020-06", "TF 1.14"),
    TENSORFLOW_PR(34951, "a list of deterministic algorithms instead of one",
                  "merged 2020-06", "TF 2.2"),
    TENSORFLOW_PR(33900, "what those tests are run with, mended", "merged 2020-06",
                  "TF 2.2"),
    TENSORFLOW_ISSUE(18096, "asks for a way to configure cuDNN's determinism",
                     "open 2020-06", "TF 1.14"),
    CUDNN_ODDS_AND_ENDS(
        "names BackwardFilter with ALGO_0 or ALGO_3 as non-deterministic"),
    PYTORCH_PAGE("Deterministic Ops", "deterministic-ops",
                 "torch.backends.cudnn.deterministic covers convolution"),
    GTC_SLIDES("slides 23-29", "weight gradients, hierarchical reduction, atomicAdd",
               NULL),
    STACK_OVERFLOW("names ALGO_0 and ALGO_3 of BackwardFilter, as of cuDNN 8.0.1"),
};

static const struct workload conv_wgrad = {
    .name = "conv_wgrad",
    .version = 1,
    .title = "cuDNN convolution backprop to weight gradients",
    .summary = "weight gradient of a 3x3 convolution, summed over images and pixels",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of dw",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = conv_wgrad_reference,
};
WORKLOAD_REGISTER(conv_wgrad);
