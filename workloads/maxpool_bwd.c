/* Gradient of 3x3 max-pooling (stride 1, padding 1) with respect to its input: each
 * window passes its upstream gradient to the position of its maximum, the first one in
 * row-major order when several are equal.  Windows overlap, so a pixel may win nine
 * times. */
#include "workloads/maxpool_bwd.h"

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/shared/window_max.h"
#include "workloads/workload.h"

static void compute_unordered(struct run *run)
{
    const struct window_max *pool = run->state;
    int64_t rows = pool->shape.images * pool->shape.height;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for
        for (int64_t row = 0; row < rows; row++) {
            row_clear(pool, row);
        }
        /* Neighbouring rows, whose windows overlap, go in opposite directions: two
         * threads meet somewhere, and nanoseconds decide where. */
#pragma omp for schedule(dynamic, 1)
        for (int64_t row = 0; row < rows; row++) {
            int64_t width = pool->shape.width;

            row_winners(pool, row);
            for (int64_t i = 0; i < width; i++) {
                window_scatter(pool, row,
                               row % pool->shape.height % 2 ? width - 1 - i : i);
            }
        }
    }
}

static void compute_ordered(struct run *run)
{
    const struct window_max *pool = run->state;
    int64_t rows = pool->shape.images * pool->shape.height;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for
        for (int64_t row = 0; row < rows; row++) {
            row_winners(pool, row);
        }
#pragma omp for
        for (int64_t row = 0; row < rows; row++) {
            row_gather(pool, row);
        }
    }
}

static void setup(struct run *run)
{
    struct window_max *pool = run_host_alloc(sizeof *pool);

    window_max_setup(run, pool);
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
