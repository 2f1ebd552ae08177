/* Gradient of 3x3 max-pooling (stride 1, padding 1) with respect to its input: each
 * window passes its upstream gradient to the position of its maximum, the first one in
 * row-major order when several are equal.  Windows overlap, so a pixel may win nine
 * times. */
#include "workloads/maxpool_bwd.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

struct maxpool_bwd {
    const struct pool_shape *shape;
    const float *x, *dy;
    float *dx;
    int32_t *winners; /* for each window: the tap (0 … 8) of its maximum */
    float *best;      /* a row of channels for each thread */
};

static void window_winners(const struct pool_shape *shape, const float *image,
                           int64_t row, int64_t column, float *best, int32_t *winners)
{
    for (int64_t c = 0; c < shape->channels; c++) {
        best[c] = -INFINITY;
        winners[c] = POOL_CENTRE;
    }
    for (int32_t tap = 0; tap < POOL_WINDOW; tap++) {
        int64_t pixel = pool_tap_pixel(shape, row, column, tap);
        const float *x = image + pixel * shape->channels;

        if (pixel < 0) {
            continue;
        }
#pragma omp simd
        for (int64_t c = 0; c < shape->channels; c++) {
            int32_t wins = -(x[c] > best[c]); /* all bits or none: no branch */

            winners[c] = (tap & wins) | (winners[c] & ~wins);
            best[c] = wins ? x[c] : best[c];
        }
    }
}

static void row_winners(const struct maxpool_bwd *pool, int64_t image, int64_t row)
{
    const struct pool_shape *shape = pool->shape;
    int64_t plane = shape->height * shape->width * shape->channels;
    float *best = pool->best + omp_get_thread_num() * shape->channels;

    for (int64_t column = 0; column < shape->width; column++) {
        window_winners(shape, pool->x + image * plane, row, column, best,
                       pool->winners + image * plane +
                           (row * shape->width + column) * shape->channels);
    }
}

static void window_scatter(const struct maxpool_bwd *pool, int64_t image, int64_t row,
                           int64_t column)
{
    const struct pool_shape *shape = pool->shape;
    int64_t pixels = shape->height * shape->width, channels = shape->channels;
    int64_t window = (image * pixels + row * shape->width + column) * channels;
    int64_t to[POOL_WINDOW];

    for (int64_t tap = 0; tap < POOL_WINDOW; tap++) {
        to[tap] = (image * pixels + pool_tap_pixel(shape, row, column, tap)) * channels;
    }
    for (int64_t c = 0; c < channels; c++) {
        float *dx = pool->dx + to[pool->winners[window + c]] + c;

#pragma omp atomic
        *dx += pool->dy[window + c];
    }
}

static void compute_unordered(struct run *run)
{
    const struct maxpool_bwd *pool = run->state;
    const struct pool_shape *shape = pool->shape;
    int64_t rows = shape->images * shape->height;
    int64_t row_elements = shape->width * shape->channels;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for
        for (int64_t row = 0; row < rows; row++) {
            memset(pool->dx + row * row_elements, 0,
                   (size_t)row_elements * sizeof(float));
        }
        /* Neighbouring rows, whose windows overlap, go in opposite directions: two
         * threads meet somewhere, and nanoseconds decide where. */
#pragma omp for schedule(dynamic, 1)
        for (int64_t task = 0; task < rows; task++) {
            int64_t image = task / shape->height, row = task % shape->height;

            row_winners(pool, image, row);
            for (int64_t i = 0; i < shape->width; i++) {
                window_scatter(pool, image, row, row % 2 ? shape->width - 1 - i : i);
            }
        }
    }
}

/* The gradient of one pixel: its windows in row-major order, each a term or a zero. */
static void pixel_gather(const struct maxpool_bwd *pool, int64_t image, int64_t row,
                         int64_t column)
{
    const struct pool_shape *shape = pool->shape;
    int64_t plane = image * shape->height * shape->width, channels = shape->channels;
    float *dx = pool->dx + (plane + row * shape->width + column) * channels;

    memset(dx, 0, (size_t)channels * sizeof(float));
    for (int32_t tap = 0; tap < POOL_WINDOW; tap++) {
        int64_t window = pool_tap_pixel(shape, row, column, tap);
        const float *dy = pool->dy + (plane + window) * channels;
        const int32_t *winners = pool->winners + (plane + window) * channels;

        if (window < 0) {
            continue;
        }
        /* The window one step up and left sees this pixel one step down and right. */
#pragma omp simd
        for (int64_t c = 0; c < channels; c++) {
            float term = dy[c];

            dx[c] += winners[c] == POOL_WINDOW - 1 - tap ? term : 0.0F;
        }
    }
}

static void compute_ordered(struct run *run)
{
    const struct maxpool_bwd *pool = run->state;
    const struct pool_shape *shape = pool->shape;
    int64_t rows = shape->images * shape->height;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for
        for (int64_t task = 0; task < rows; task++) {
            row_winners(pool, task / shape->height, task % shape->height);
        }
#pragma omp for
        for (int64_t task = 0; task < rows; task++) {
            for (int64_t column = 0; column < shape->width; column++) {
                pixel_gather(pool, task / shape->height, task % shape->height, column);
            }
        }
    }
}

static void setup(struct run *run)
{
    const struct pool_shape *shape = run->size->params;
    struct maxpool_bwd *pool = run_host_alloc(sizeof *pool);
    int64_t extents[] = { shape->images, shape->height, shape->width, shape->channels };
    int64_t elements = extents[0] * extents[1] * extents[2] * extents[3];

    pool->shape = shape;
    pool->x = run_input_f32(run, "x", 4, extents, FILL_UNIFORM);
    pool->dy = run_input_f32(run, "dy", 4, extents, FILL_WIDE);
    pool->dx = run_output_f32(run, "dx", 4, extents);
    pool->winners = run_alloc(run, (size_t)elements * sizeof *pool->winners);
    pool->best = run_alloc_f32(run, run->threads * shape->channels);
    run->state = pool;
}

void maxpool_bwd_reference(const struct run *run, const struct tensor *inputs,
                           const struct tensor *output, double *ret_expected,
                           double *ret_bound)
{
    const struct pool_shape *s = run->size->params;
    const float *x = inputs[0].data, *dy = inputs[1].data;
    int64_t pixels = s->height * s->width;
    struct exact_sums exact =
        sums_begin(run, POOL_WINDOW, output, ret_expected, ret_bound);

    for (int64_t window = 0; window < s->images * pixels; window++) {
        for (int64_t c = 0; c < s->channels; c++) {
            int64_t image = window / pixels, pixel = window % pixels, winner = -1;

            for (int64_t tap = 0; tap < POOL_WINDOW; tap++) {
                int64_t at = pool_tap_pixel(s, pixel / s->width, pixel % s->width, tap);
                int64_t from = (image * pixels + at) * s->channels + c;

                if (at >= 0 && (winner < 0 || x[from] > x[winner])) {
                    winner = from;
                }
            }
            sums_add(&exact, winner, dy[window * s->channels + c]);
        }
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each window adds its gradient to its maximum with an atomic add",
      .models = "cuDNN CUDNN_POOLING_MAX: overlapping windows meet in atomicAdd",
      .algorithm = "scatter, atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "each pixel collects from its nine windows in row-major order",
      .models = "cuDNN CUDNN_POOLING_MAX_DETERMINISTIC, selected by "
                "TF_CUDNN_DETERMINISTIC and by TF_DETERMINISTIC_OPS",
      .algorithm = "gather, row-major windows",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "x[8,28,28,192] dy[8,28,28,192] dx[8,28,28,192]",
      &(const struct pool_shape){ 8, 28, 28, 192 } },
    { "medium", "x[32,28,28,192] dy[32,28,28,192] dx[32,28,28,192]",
      &(const struct pool_shape){ 32, 28, 28, 192 } },
    { "large", "x[256,28,28,192] dy[256,28,28,192] dx[256,28,28,192]",
      &(const struct pool_shape){ 256, 28, 28, 192 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_PR(25269, "deterministic cuDNN max-pooling by TF_CUDNN_DETERMINISTIC",
                  "merged 2020-06", "TF 1.14"),
    TENSORFLOW_PR(25796, "tests of TF_CUDNN_DETERMINISTIC", "merged 2020-06", "TF 1.14"),
    CUDNN_ODDS_AND_ENDS(
        "names PoolingBackward with CUDNN_POOLING_MAX as non-deterministic"),
    GTC_SLIDES("slides 41-42",
               "max-pooling: overlapping windows, root cause and solution", NULL),
    STACK_OVERFLOW("names PoolingBackward with CUDNN_POOLING_MAX, as of cuDNN 8.0.1"),
};

static const struct workload maxpool_bwd = {
    .name = "maxpool_bwd",
    .version = 1,
    .title = "cuDNN max-pooling backprop",
    .summary = "input gradient of 3x3 max-pooling with overlapping windows",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of dx",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = maxpool_bwd_reference,
};
WORKLOAD_REGISTER(maxpool_bwd);
