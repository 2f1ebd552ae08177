/* Batched matrix product whose inner dimension is split over thread-blocks:
 * c[b,i,j] = sum over k of a[b,i,k] * b[b,k,j]. */
#include "workloads/matmul_batched.h"

#include <omp.h>
#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/shared/tf32.h"
#include "workloads/shared/tree.h"
#include "workloads/workload.h"

enum { ROWS = 4 /* of c, in registers' reach at a time */ };

struct matmul_batched {
    const struct matmul_shape *shape;
    const float *a, *b;
    float *c;
    int64_t elements; /* of one product */
    float *parts;     /* [max(MATMUL_SPLIT * batch, threads)][elements] */
};

/* PART = a[batch, :, split] * b[batch, split, :]. */
static void split_multiply(const struct matmul_batched *matmul, int64_t batch,
                           int64_t split, float *part)
{
    const struct matmul_shape *s = matmul->shape;
    int64_t first = split * (s->inner / MATMUL_SPLIT),
            end = first + s->inner / MATMUL_SPLIT;
    const float *b = matmul->b + batch * s->inner * s->columns;

    memset(part, 0, (size_t)matmul->elements * sizeof(float));
    for (int64_t row = 0; row < s->rows; row += ROWS) {
        const float *a = matmul->a + (batch * s->rows + row) * s->inner;
        float *to = part + row * s->columns;

        for (int64_t k = first; k < end; k++) {
            for (int64_t i = 0; i < ROWS; i++) {
                float factor = a[i * s->inner + k];

#pragma omp simd
                for (int64_t j = 0; j < s->columns; j++) {
                    to[i * s->columns + j] += factor * b[k * s->columns + j];
                }
            }
        }
    }
}

/* Neighbouring tasks go in opposite directions: two threads meet somewhere, and where
 * depends on nanoseconds. */
static void compute_unordered(struct run *run)
{
    const struct matmul_batched *matmul = run->state;
    int64_t elements = matmul->elements;

    memset(matmul->c, 0, (size_t)(matmul->shape->batch * elements) * sizeof(float));
#pragma omp parallel num_threads(run->threads)
    {
        float *part = matmul->parts + omp_get_thread_num() * elements;

#pragma omp for schedule(dynamic, 1)
        for (int64_t task = 0; task < matmul->shape->batch * MATMUL_SPLIT; task++) {
            float *c = matmul->c + task / MATMUL_SPLIT * elements;

            split_multiply(matmul, task / MATMUL_SPLIT, task % MATMUL_SPLIT, part);
            for (int64_t i = 0; i < elements; i++) {
                int64_t at = task % 2 ? elements - 1 - i : i;

#pragma omp atomic
                c[at] += part[at];
            }
        }
    }
}

static void compute_ordered(struct run *run)
{
    const struct matmul_batched *matmul = run->state;
    int64_t elements = matmul->elements;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for schedule(dynamic, 1)
        for (int64_t task = 0; task < matmul->shape->batch * MATMUL_SPLIT; task++) {
            split_multiply(matmul, task / MATMUL_SPLIT, task % MATMUL_SPLIT,
                           matmul->parts + task * elements);
        }
#pragma omp for schedule(dynamic, 1)
        for (int64_t batch = 0; batch < matmul->shape->batch; batch++) {
            float *parts = matmul->parts + batch * MATMUL_SPLIT * elements;

            tree_sum(parts, MATMUL_SPLIT, elements, 0, elements);
            memcpy(matmul->c + batch * elements, parts, (size_t)elements * sizeof(float));
        }
    }
}

static void setup(struct run *run)
{
    const struct matmul_shape *s = run->size->params;
    struct matmul_batched *matmul = run_host_alloc(sizeof *matmul);
    int64_t a_shape[] = { s->batch, s->rows, s->inner };
    int64_t b_shape[] = { s->batch, s->inner, s->columns };
    int64_t c_shape[] = { s->batch, s->rows, s->columns };
    int64_t parts =
        s->batch * MATMUL_SPLIT > run->threads ? s->batch * MATMUL_SPLIT : run->threads;

    matmul->shape = s;
    matmul->a = run_input_f32(run, "a", 3, a_shape, FILL_UNIFORM);
    matmul->b = run_input_f32(run, "b", 3, b_shape, FILL_WIDE);
    matmul->c = run_output_f32(run, "c", 3, c_shape);
    matmul->elements = s->rows * s->columns;
    matmul->parts = run_alloc_f32(run, parts * matmul->elements);
    run->state = matmul;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct matmul_shape *s = run->size->params;
    const float *a = inputs[0].data, *b = inputs[1].data;
    struct exact_sums exact = sums_begin(run, s->inner, output, ret_expected, ret_bound);

    if (tf32_is_permitted(run)) {
        exact.gamma = tf32_gamma(s->inner);
    }
    for (int64_t row = 0; row < s->batch * s->rows; row++) {
        for (int64_t k = 0; k < s->inner; k++) {
            for (int64_t j = 0; j < s->columns; j++) {
                const float *from = b + (row / s->rows * s->inner + k) * s->columns;

                sums_add(&exact, row * s->columns + j,
                         (double)a[row * s->inner + k] * from[j]);
            }
        }
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "16 parts of the inner dimension meet in atomic adds",
      .models = "matrix products split over thread-blocks along the inner dimension",
      .algorithm = "inner dimension in 16 parts, atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "16 parts of the inner dimension, joined by a fixed tree",
      .models = "cuBLAS on one stream, or with CUBLAS_WORKSPACE_CONFIG set: parts are "
                "stored and then joined",
      .algorithm = "inner dimension in 16 parts, fixed tree",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "a[8,64,1024] b[8,1024,64] c[8,64,64]",
      &(const struct matmul_shape){ 8, 64, 1024, 64 } },
    { "medium", "a[32,128,2048] b[32,2048,128] c[32,128,128]",
      &(const struct matmul_shape){ 32, 128, 2048, 128 } },
    { "large", "a[64,256,8192] b[64,8192,256] c[64,256,256]",
      &(const struct matmul_shape){ 64, 256, 8192, 256 } },
};

static const struct workload_reference references[] = {
    GTC_SLIDES("slide 9", "hypothesis: GEMM split between thread-blocks", NULL),
    { .kind = "documentation",
      .id = "cuBLAS: results reproducibility",
      .title = "repeatable on one stream; several streams need CUBLAS_WORKSPACE_CONFIG",
      .url = "https://docs.nvidia.com/cuda/cublas/index.html#results-reproducibility",
      .solved = NULL },
    PYTORCH_PAGE("Deterministic Ops", "deterministic-ops",
                 "torch.backends.cudnn.deterministic covers batched products, too"),
    PYTORCH_ALGORITHMS(
        "mm, mv and bmm raise unless CUBLAS_WORKSPACE_CONFIG is :4096:8 or :16:8"),
};

static const struct workload matmul_batched = {
    .name = "matmul_batched",
    .version = 1,
    .title = "Batched matrix product split over thread-blocks",
    .summary = "products of matrices whose inner dimension several thread-blocks share",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of c",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(matmul_batched);
