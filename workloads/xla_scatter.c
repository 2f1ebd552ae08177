/* XLA's scatter with an addition: windows of updates are added wherever their indices
 * say, sums[r+i,c+j] += updates[n,i,j] for (r,c) = indices[n].  Windows overlap, and one
 * that would reach over an edge is left out as a whole, as XLA's semantics demand. */
#include "workloads/xla_scatter.h"

#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

enum { TASK_WINDOWS = 16, BAND = 8 /* rows of the sums with one owner */ };

static void window_add_atomically(const struct xla_scatter *scatter, int64_t n)
{
    const struct xla_scatter_shape *s = &scatter->shape;
    const int32_t *index = scatter->indices + 2 * n;
    const float *from = scatter->updates + n * s->height * s->width;

    if (!xla_window_fits(s, index)) {
        return;
    }
    for (int64_t i = 0; i < s->height; i++) {
        float *to = scatter->sums + (index[0] + i) * s->extent + index[1];

        for (int64_t j = 0; j < s->width; j++) {
#pragma omp atomic
            to[j] += from[i * s->width + j];
        }
    }
}

/* Every other task goes backwards, so that windows which are neighbours do not always
 * arrive as neighbours. */
static void compute_unordered(struct run *run)
{
    const struct xla_scatter *scatter = run->state;
    const struct xla_scatter_shape *s = &scatter->shape;

    memset(scatter->sums, 0, (size_t)(s->extent * s->extent) * sizeof(float));
#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t task = 0; task < s->windows / TASK_WINDOWS; task++) {
        for (int64_t i = 0; i < TASK_WINDOWS; i++) {
            window_add_atomically(scatter, task * TASK_WINDOWS +
                                               (task % 2 ? TASK_WINDOWS - 1 - i : i));
        }
    }
}

/* Adds the rows of window N that are among [BEGIN, END) of the sums. */
static void window_add_rows(const struct xla_scatter *scatter, int64_t n, int64_t begin,
                            int64_t end)
{
    const struct xla_scatter_shape *s = &scatter->shape;
    const int32_t *index = scatter->indices + 2 * n;
    int64_t first = index[0] > begin ? index[0] : begin;
    int64_t past = index[0] + s->height < end ? index[0] + s->height : end;

    for (int64_t row = first; row < past && xla_window_fits(s, index); row++) {
        const float *from =
            scatter->updates + (n * s->height + row - index[0]) * s->width;
        float *to = scatter->sums + row * s->extent + index[1];

#pragma omp simd
        for (int64_t j = 0; j < s->width; j++) {
            to[j] += from[j];
        }
    }
}

static void compute_ordered(struct run *run)
{
    const struct xla_scatter *scatter = run->state;
    const struct xla_scatter_shape *s = &scatter->shape;

#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t begin = 0; begin < s->extent; begin += BAND) {
        memset(scatter->sums + begin * s->extent, 0,
               (size_t)(BAND * s->extent) * sizeof(float));
        for (int64_t n = 0; n < s->windows; n++) {
            window_add_rows(scatter, n, begin, begin + BAND);
        }
    }
}

static void setup(struct run *run)
{
    struct xla_scatter *scatter = run_host_alloc(sizeof *scatter);

    xla_scatter_tensors(run, scatter);
    run->state = scatter;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct xla_scatter_shape *s = run->size->params;
    const int32_t *indices = inputs[0].data;
    const float *updates = inputs[1].data;
    int64_t window = s->height * s->width;
    struct exact_sums exact = sums_begin_counted(run, output, ret_expected, ret_bound);

    for (int64_t n = 0; n < s->windows; n++) {
        for (int64_t i = 0; i < window && xla_window_fits(s, indices + 2 * n); i++) {
            int64_t row = indices[2 * n] + i / s->width;
            int64_t to = row * s->extent + indices[2 * n + 1] + i % s->width;

            sums_add(&exact, to, updates[n * window + i]);
        }
    }
    sums_finish(&exact, 0);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "every element of a window is added with an atomic add",
      .models = "XLA's scatter on GPU: a thread an update, atomicAdd",
      .algorithm = "atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "window after window; each band of 8 rows of the sums has one owner",
      .models = "XLA's scatter under enable_op_determinism since TF 2.8: a loop over the "
                "updates",
      .algorithm = "owner of 8 rows, windows in order",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "updates[16384,8,16] indices[16384,2] sums[128,128]",
      &(const struct xla_scatter_shape){ 16384, 8, 16, 128 } },
    { "medium", "updates[65536,8,16] indices[65536,2] sums[256,256]",
      &(const struct xla_scatter_shape){ 65536, 8, 16, 256 } },
    { "large", "updates[524288,16,32] indices[524288,2] sums[2048,2048]",
      &(const struct xla_scatter_shape){ 524288, 16, 32, 2048 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_COMMIT(
        4dc6d4d5, 9008b4558040afa1a5a5993f583bb48e,
        "XLA: scatter becomes a loop over its updates when determinism is asked for",
        "merged 2023-07", "TF 2.8"),
    GITHUB_ISSUE("jax", "jax-ml/jax", 17844, "how slow that loop is", NULL,
                 "openxla PR 17886"),
    GITHUB_PR("openxla", "openxla/xla", 17886,
              "deterministic scatter by sorting and a scan, not a loop", NULL, NULL),
    GITHUB_PR("openxla", "openxla/xla", 19275, "the same for windows", NULL, NULL),
};

static const struct workload xla_scatter = {
    .name = "xla_scatter",
    .version = 1,
    .title = "XLA Scatter on GPU",
    .summary = "windows added to a matrix where indices say, with overlap",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of the sums",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(xla_scatter);
