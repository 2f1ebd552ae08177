/* Product of a sparse and a dense matrix: c[i,j] = sum over the nonzeros (i,k) of a of
 * a[i,k] * b[k,j].  The nonzeros come as coordinates, sorted by neither. */
#include "workloads/sparse_dense_matmul.h"

#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

enum { TASK = 64 /* nonzeros in a task that adds atomically */, OWNED = 16 /* rows */ };

static void compute_unordered(struct run *run)
{
    const struct sparse_dense_matmul *matmul = run->state;
    const struct sparse_matmul_shape *s = &matmul->shape;

    memset(matmul->c, 0, (size_t)(s->rows * s->columns) * sizeof(float));
#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t task = 0; task < s->nonzeros / TASK; task++) {
        for (int64_t i = task * TASK; i < (task + 1) * TASK; i++) {
            const float *b = matmul->b + matmul->inner[i] * s->columns;
            float *c = matmul->c + matmul->row[i] * s->columns;
            float value = matmul->values[i];

            for (int64_t j = 0; j < s->columns; j++) {
#pragma omp atomic
                c[j] += value * b[j];
            }
        }
    }
}

/* A stable counting sort: compressed rows. */
static void rows_compress(const struct sparse_dense_matmul *matmul)
{
    const struct sparse_matmul_shape *s = &matmul->shape;
    int32_t *starts = matmul->starts;

    memset(starts, 0, (size_t)(s->rows + 2) * sizeof *starts);
    for (int64_t i = 0; i < s->nonzeros; i++) {
        starts[matmul->row[i] + 2]++;
    }
    for (int64_t row = 0; row < s->rows; row++) {
        starts[row + 2] += starts[row + 1];
    }
    for (int64_t i = 0; i < s->nonzeros; i++) {
        matmul->sorted[starts[matmul->row[i] + 1]++] = (int32_t)i;
    }
}

static void row_multiply(const struct sparse_dense_matmul *matmul, int64_t row)
{
    int64_t columns = matmul->shape.columns;
    float *c = matmul->c + row * columns;

    memset(c, 0, (size_t)columns * sizeof(float));
    for (int32_t at = matmul->starts[row]; at < matmul->starts[row + 1]; at++) {
        int32_t i = matmul->sorted[at];
        const float *b = matmul->b + matmul->inner[i] * columns;
        float value = matmul->values[i];

#pragma omp simd
        for (int64_t j = 0; j < columns; j++) {
            c[j] += value * b[j];
        }
    }
}

static void compute_ordered(struct run *run)
{
    const struct sparse_dense_matmul *matmul = run->state;

    rows_compress(matmul);
#pragma omp parallel for num_threads(run->threads) schedule(dynamic, OWNED)
    for (int64_t row = 0; row < matmul->shape.rows; row++) {
        row_multiply(matmul, row);
    }
}

static void setup(struct run *run)
{
    const struct sparse_matmul_shape *s = run->size->params;
    struct sparse_dense_matmul *matmul = run_host_alloc(sizeof *matmul);

    sparse_dense_matmul_tensors(run, matmul);
    matmul->starts = run_alloc_i32(run, s->rows + 2);
    matmul->sorted = run_alloc_i32(run, s->nonzeros);
    run->state = matmul;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct sparse_matmul_shape *s = run->size->params;
    const int32_t *rows = inputs[0].data, *inner = inputs[1].data;
    const float *values = inputs[2].data, *b = inputs[3].data;
    struct exact_sums exact = sums_begin_counted(run, output, ret_expected, ret_bound);

    for (int64_t i = 0; i < s->nonzeros; i++) {
        for (int64_t j = 0; j < s->columns; j++) {
            sums_add(&exact, rows[i] * s->columns + j,
                     (double)values[i] * b[inner[i] * s->columns + j]);
        }
    }
    sums_finish(&exact, 0);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "every nonzero adds its multiple of a row of b with atomic adds",
      .models = "tf.sparse.sparse_dense_matmul on GPU: atomicAdd",
      .algorithm = "coordinates, atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "nonzeros sorted by row, stably; each row of c has one owner",
      .models = "nothing in the documents: TensorFlow raises an error instead",
      .algorithm = "counting sort, compressed rows",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "a[512,2048] with 32768 nonzeros, b[2048,64] c[512,64]",
      &(const struct sparse_matmul_shape){ 512, 2048, 64, 32768 } },
    { "medium", "a[2048,8192] with 131072 nonzeros, b[8192,128] c[2048,128]",
      &(const struct sparse_matmul_shape){ 2048, 8192, 128, 131072 } },
    { "large", "a[16384,65536] with 4194304 nonzeros, b[65536,256] c[16384,256]",
      &(const struct sparse_matmul_shape){ 16384, 65536, 256, 4194304 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_ISSUE(18037,
                     "small errors of sparse_tensor_dense_matmul in float32 on GPU",
                     "closed 2023-07", NULL),
    TENSORFLOW_PR(47749, "accumulating in float64; closed, since it is no solution",
                  "closed 2023-07", NULL),
    TENSORFLOW_PR(
        50355, "sparse_dense_matmul raises when determinism is asked for, since TF 2.6",
        "merged 2023-07", NULL),
    TENSORFLOW_PR(47419,
                  "the same product on GPU for float16, float64 and complex numbers",
                  "merged 2023-07", NULL),
};

static const struct workload sparse_dense_matmul = {
    .name = "sparse_dense_matmul",
    .version = 1,
    .title = "tf.sparse.sparse_dense_matmul",
    .summary = "a sparse matrix, as unsorted coordinates, times a dense one",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of c",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(sparse_dense_matmul);
