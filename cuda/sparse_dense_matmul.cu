/* A sparse matrix times a dense one; workloads/sparse_dense_matmul.c defines the
 * operation.  `ordered` adds in the order of the CPU's, so it has its bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/sort.h"
#include "workloads/sparse_dense_matmul.h"

struct sparse_dense_matmul {
    struct sparse_matmul_shape shape;
    const int32_t *row, *inner; /* coordinates of each nonzero */
    const float *values, *b;
    float *c;
    struct row_sort sort; /* nonzeros by row, in the order in which they came */
};

/* One thread a nonzero and a column of b. */
__global__ static void atomic_kernel(struct sparse_dense_matmul matmul)
{
    int64_t columns = matmul.shape.columns;

    KERNEL_FOR(i, matmul.shape.nonzeros * columns)
    {
        int64_t nonzero = i / columns, column = i % columns;

        atomicAdd(&matmul.c[matmul.row[nonzero] * columns + column],
                  matmul.values[nonzero] *
                      matmul.b[matmul.inner[nonzero] * columns + column]);
    }
}

static void compute_unordered(struct run *run)
{
    const struct sparse_dense_matmul *matmul =
        (const struct sparse_dense_matmul *)run->state;
    const struct sparse_matmul_shape *s = &matmul->shape;

    CUDA_TRY(
        cudaMemsetAsync(matmul->c, 0, (size_t)(s->rows * s->columns) * sizeof(float)));
    LAUNCH_ITEMS(atomic_kernel, s->nonzeros * s->columns, *matmul);
}

/* One thread an element of c. */
__global__ static void multiply_kernel(struct sparse_dense_matmul matmul)
{
    int64_t columns = matmul.shape.columns;

    KERNEL_FOR(i, matmul.shape.rows * columns)
    {
        int64_t row = i / columns;
        float sum = 0;

        for (int32_t at = matmul.sort.starts[row]; at < matmul.sort.starts[row + 1];
             at++) {
            int64_t nonzero = matmul.sort.sorted[at];

            sum += matmul.values[nonzero] *
                   matmul.b[matmul.inner[nonzero] * columns + i % columns];
        }
        matmul.c[i] = sum;
    }
}

static void compute_ordered(struct run *run)
{
    struct sparse_dense_matmul *matmul = (struct sparse_dense_matmul *)run->state;

    sort_rows(&matmul->sort, matmul->row);
    LAUNCH_ITEMS(multiply_kernel, matmul->shape.rows * matmul->shape.columns, *matmul);
}

static void setup(struct run *run)
{
    const struct sparse_matmul_shape *s =
        (const struct sparse_matmul_shape *)run->size->params;
    struct sparse_dense_matmul *matmul =
        (struct sparse_dense_matmul *)run_host_alloc(sizeof(*matmul));
    const int64_t *nonzeros = &s->nonzeros;
    int64_t b_shape[] = { s->inner, s->columns }, c_shape[] = { s->rows, s->columns };

    matmul->shape = *s;
    matmul->row = run_input_i32(run, "a_rows", 1, nonzeros, s->rows);
    matmul->inner = run_input_i32(run, "a_columns", 1, nonzeros, s->inner);
    matmul->values = run_input_f32(run, "a_values", 1, nonzeros, FILL_WIDE);
    matmul->b = run_input_f32(run, "b", 2, b_shape, FILL_UNIFORM);
    matmul->c = run_output_f32(run, "c", 2, c_shape);
    matmul->sort.rows = s->nonzeros;
    matmul->sort.destinations = s->rows;
    sort_init(run, &matmul->sort);
    run->state = matmul;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "every nonzero adds its multiple of a row of b with atomicAdd",
      .algorithm = "coordinates, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "nonzeros sorted by row, stably; each element of c has one owner",
      .algorithm = "counting sort, compressed rows",
      .compute = compute_ordered },
};

CUDA_TWIN(sparse_dense_matmul, 1, variants, setup);
