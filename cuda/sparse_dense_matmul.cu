/* A sparse matrix times a dense one; workloads/sparse_dense_matmul.c defines the
 * operation.  `ordered` adds in the CPU's order, so it has the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/sort.h"
#include "workloads/sparse_dense_matmul.h"

struct sparse_gpu : sparse_dense_matmul {
    struct row_sort sort; /* nonzeros by row, in the order in which they came */
};

/* One thread a nonzero and a column of b. */
__global__ static void atomic_kernel(struct sparse_gpu matmul)
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
    const struct sparse_gpu *matmul = (const struct sparse_gpu *)run->state;
    const struct sparse_matmul_shape *s = &matmul->shape;

    CUDA_TRY(
        cudaMemsetAsync(matmul->c, 0, (size_t)(s->rows * s->columns) * sizeof(float)));
    LAUNCH_ITEMS(atomic_kernel, s->nonzeros * s->columns, *matmul);
}

/* One thread an element of c. */
__global__ static void multiply_kernel(struct sparse_gpu matmul)
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
    struct sparse_gpu *matmul = (struct sparse_gpu *)run->state;

    sort_rows(&matmul->sort, matmul->row);
    LAUNCH_ITEMS(multiply_kernel, matmul->shape.rows * matmul->shape.columns, *matmul);
}

static void setup(struct run *run)
{
    struct sparse_gpu *matmul = (struct sparse_gpu *)run_host_alloc(sizeof *matmul);

    sparse_dense_matmul_tensors(run, matmul);
    matmul->sort.rows = matmul->shape.nonzeros;
    matmul->sort.destinations = matmul->shape.rows;
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
