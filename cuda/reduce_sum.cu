/* Sums along the last axis; workloads/reduce_sum.c defines the operation.  `ordered` and
 * `matmul` add in the CPU's order, so they have the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/tree.h"
#include "workloads/reduce_sum.h"

enum { WARP_COLUMNS = 8 * WARP_LANES /* of a partial sum of `unordered` */ };

struct reduce_sum {
    int64_t rows, columns;
    int64_t blocks; /* of REDUCE_BLOCK columns, in a row */
    int64_t panels; /* of REDUCE_MATMUL_DEPTH columns, in a row */
    const float *x;
    float *sum;
    float *parts; /* [rows][blocks] or [rows][panels] */
    float *ones;  /* REDUCE_MATMUL_DEPTH + 1 of them */
};

/* A warp sums WARP_COLUMNS columns; the sums of warps meet in atomicAdd. */
__global__ static void atomic_kernel(struct reduce_sum reduce, int64_t warps)
{
    int64_t lane = threadIdx.x % WARP_LANES;

    for (int64_t warp = kernel_thread() / WARP_LANES; warp < reduce.rows * warps;
         warp += kernel_threads() / WARP_LANES) {
        int64_t row = warp / warps, begin = warp % warps * WARP_COLUMNS;
        float sum = 0;

        for (int64_t c = begin + lane; c < begin + WARP_COLUMNS && c < reduce.columns;
             c += WARP_LANES) {
            sum += reduce.x[row * reduce.columns + c];
        }
        sum = warp_sum(sum);
        if (lane == 0) {
            atomicAdd(&reduce.sum[row], sum);
        }
    }
}

static void compute_unordered(struct run *run)
{
    const struct reduce_sum *reduce = (const struct reduce_sum *)run->state;
    int64_t warps = ceil_div(reduce->columns, WARP_COLUMNS);

    CUDA_TRY(cudaMemsetAsync(reduce->sum, 0, (size_t)reduce->rows * sizeof(float)));
    LAUNCH_ITEMS(atomic_kernel, reduce->rows * warps * WARP_LANES, *reduce, warps);
}

/* REDUCE_LANES neighbouring threads sum a block, as the CPU's lanes do: element i goes to
 * lane i mod REDUCE_LANES, lanes join by a tree. */
__global__ static void block_kernel(struct reduce_sum reduce)
{
    int64_t lane = threadIdx.x % REDUCE_LANES, tasks = reduce.rows * reduce.blocks;
    int64_t steps = ceil_div(tasks * REDUCE_LANES, kernel_threads());

    /* Every thread takes every step: the tree needs all lanes of the warp. */
    for (int64_t step = 0; step < steps; step++) {
        int64_t task = (step * kernel_threads() + kernel_thread()) / REDUCE_LANES;
        int64_t begin = task % reduce.blocks * REDUCE_BLOCK, end = begin + REDUCE_BLOCK;
        const float *x = reduce.x + task / reduce.blocks * reduce.columns;
        float sum = 0;

        if (end > reduce.columns) {
            end = reduce.columns;
        }
        for (int64_t c = begin + lane; task < tasks && c < end; c += REDUCE_LANES) {
            sum += x[c];
        }
        sum = tree_sum_in_warp(sum, REDUCE_LANES);
        if (task < tasks && lane == 0) {
            reduce.parts[task] = sum;
        }
    }
}

/* One thread block a row. */
__global__ static void join_kernel(struct reduce_sum reduce)
{
    float *parts = reduce.parts + blockIdx.x * reduce.blocks;

    tree_sum_in_block(parts, reduce.blocks, 1, threadIdx.x, blockDim.x);
    if (threadIdx.x == 0) {
        reduce.sum[blockIdx.x] = parts[0];
    }
}

static void compute_ordered(struct run *run)
{
    const struct reduce_sum *reduce = (const struct reduce_sum *)run->state;

    LAUNCH_ITEMS(block_kernel, reduce->rows * reduce->blocks * REDUCE_LANES, *reduce);
    LAUNCH(join_kernel, (unsigned)reduce->rows, KERNEL_THREADS, 0, 0, *reduce);
}

/* parts[r, p] = x[r, panel p] * ones */
__global__ static void product_kernel(struct reduce_sum reduce)
{
    KERNEL_FOR(i, reduce.rows * reduce.panels)
    {
        int64_t begin = i % reduce.panels * REDUCE_MATMUL_DEPTH;
        const float *x = reduce.x + i / reduce.panels * reduce.columns;
        float product = 0;

        for (int64_t k = 0; k < REDUCE_MATMUL_DEPTH && begin + k < reduce.columns; k++) {
            product += x[begin + k] * reduce.ones[k];
        }
        reduce.parts[i] = product;
    }
}

/* The running sum of a row is the product's last column: see matmul_ones of the CPU. */
__global__ static void fold_kernel(struct reduce_sum reduce)
{
    KERNEL_FOR(row, reduce.rows)
    {
        float sum = 0;

        for (int64_t panel = 0; panel < reduce.panels; panel++) {
            sum = reduce.parts[row * reduce.panels + panel] +
                  sum * reduce.ones[REDUCE_MATMUL_DEPTH];
        }
        reduce.sum[row] = sum;
    }
}

static void compute_matmul(struct run *run)
{
    const struct reduce_sum *reduce = (const struct reduce_sum *)run->state;

    LAUNCH_ITEMS(product_kernel, reduce->rows * reduce->panels, *reduce);
    LAUNCH_ITEMS(fold_kernel, reduce->rows, *reduce);
}

static float *make_ones(struct run *run)
{
    float ones[REDUCE_MATMUL_DEPTH + 1];
    float *memory = (float *)run_alloc(run, sizeof ones);

    for (int k = 0; k <= REDUCE_MATMUL_DEPTH; k++) {
        ones[k] = 1;
    }
    CUDA_TRY(cudaMemcpy(memory, ones, sizeof ones, cudaMemcpyHostToDevice));
    return memory;
}

static void setup(struct run *run)
{
    const struct reduce_sum_shape *shape =
        (const struct reduce_sum_shape *)run->size->params;
    struct reduce_sum *reduce = (struct reduce_sum *)run_host_alloc(sizeof *reduce);
    int64_t x_shape[] = { shape->rows, shape->columns };

    reduce->rows = shape->rows;
    reduce->columns = shape->columns;
    reduce->blocks = ceil_div(shape->columns, REDUCE_BLOCK);
    reduce->panels = ceil_div(shape->columns, REDUCE_MATMUL_DEPTH);
    reduce->x = run_input_f32(run, "x", 2, x_shape, FILL_WIDE);
    reduce->sum = run_output_f32(run, "sum", 1, &shape->rows);
    reduce->parts = run_alloc_f32(run, reduce->rows * reduce->panels);
    reduce->ones = make_ones(run);
    run->state = reduce;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each warp sums 256 columns, the sums of warps meet in atomicAdd",
      .algorithm = "warps, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .algorithm = "blocks of 256, 16 lanes, fixed tree",
      .compute = compute_ordered },
    { .name = "matmul",
      .algorithm = "matrix product with ones, depth 64",
      .compute = compute_matmul },
};

CUDA_TWIN(reduce_sum, 1, variants, setup);
