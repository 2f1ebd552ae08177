/* Reductions as matrix products; workloads/matmul_reduce.c defines the operation.
 * `matmul` adds in the CPU's order, so it has the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "workloads/matmul_reduce.h"

enum {
    TASK_COLUMNS = 8 * WARP_LANES, /* of a warp's atomicAdd to a sum */
    TASK_EXAMPLES = 32,            /* of a thread's atomicAdd to the bias */
    OWNED = 4,                     /* rows of dw1 that a thread computes */
    TILE_ROWS = 8,                 /* of a block of warps, one a row */
    TILE_COLUMNS = 4 * WARP_LANES  /* that it reads at a time */
};

/* The first ROWS rows of dw1 = transpose([x 1]) * dy, examples in order. */
__global__ static void gradient_kernel(struct matmul_reduce layer, int64_t rows)
{
    const struct reduce_layer_shape *s = &layer.shape;

    KERNEL_FOR(i, ceil_div(rows, OWNED) * s->outputs)
    {
        int64_t k = i % s->outputs, first = i / s->outputs * OWNED;
        float sums[OWNED] = { 0, 0, 0, 0 };

        for (int64_t n = 0; n < s->examples; n++) {
            const float *x1 = layer.x1 + n * s->inputs + first;
            float dy = layer.dy[n * s->outputs + k];

            for (int row = 0; row < OWNED; row++) {
                sums[row] += x1[row] * dy;
            }
        }
        for (int row = 0; row < OWNED; row++) {
            if (first + row < rows) {
                layer.dw1[(first + row) * s->outputs + k] = sums[row];
            }
        }
    }
}

static void gradient_multiply(const struct matmul_reduce *layer, int64_t rows)
{
    LAUNCH_ITEMS(gradient_kernel, ceil_div(rows, OWNED) * layer->shape.outputs, *layer,
                 rows);
}

__global__ static void sums_atomic_kernel(struct matmul_reduce layer, int64_t tasks)
{
    const struct reduce_layer_shape *s = &layer.shape;
    int64_t lane = threadIdx.x % WARP_LANES;

    for (int64_t warp = kernel_thread() / WARP_LANES; warp < s->rows * tasks;
         warp += kernel_threads() / WARP_LANES) {
        int64_t row = warp / tasks, begin = warp % tasks * TASK_COLUMNS;
        float sum = 0;

        for (int64_t c = begin + lane; c < begin + TASK_COLUMNS && c < s->columns;
             c += WARP_LANES) {
            sum += layer.a[row * s->columns + c];
        }
        sum = warp_sum(sum);
        if (lane == 0) {
            atomicAdd(&layer.sums[row], sum);
        }
    }
}

__global__ static void bias_atomic_kernel(struct matmul_reduce layer, int64_t tasks)
{
    const struct reduce_layer_shape *s = &layer.shape;

    KERNEL_FOR(i, tasks * s->outputs)
    {
        int64_t k = i % s->outputs, begin = i / s->outputs * TASK_EXAMPLES;
        float sum = 0;

        for (int64_t n = begin; n < begin + TASK_EXAMPLES && n < s->examples; n++) {
            sum += layer.dy[n * s->outputs + k];
        }
        atomicAdd(&layer.dw1[(s->inputs - 1) * s->outputs + k], sum);
    }
}

static void compute_unordered(struct run *run)
{
    const struct matmul_reduce *layer = (const struct matmul_reduce *)run->state;
    const struct reduce_layer_shape *s = &layer->shape;
    int64_t bias = s->inputs - 1, columns = ceil_div(s->columns, TASK_COLUMNS);
    int64_t examples = ceil_div(s->examples, TASK_EXAMPLES);

    CUDA_TRY(cudaMemsetAsync(layer->sums, 0, (size_t)s->rows * sizeof(float)));
    CUDA_TRY(cudaMemsetAsync(layer->dw1 + bias * s->outputs, 0,
                             (size_t)s->outputs * sizeof(float)));
    gradient_multiply(layer, bias);
    LAUNCH_ITEMS(sums_atomic_kernel, s->rows * columns * WARP_LANES, *layer, columns);
    LAUNCH_ITEMS(bias_atomic_kernel, examples * s->outputs, *layer, examples);
}

/* a * ones: the first threads of a block each have a row, of which a warp multiplies the
 * next columns. */
__global__ static void sums_kernel(struct matmul_reduce layer)
{
    __shared__ float products[TILE_ROWS][TILE_COLUMNS + 1];
    const struct reduce_layer_shape *s = &layer.shape;
    int64_t first = (int64_t)blockIdx.x * TILE_ROWS, own = first + threadIdx.x;
    int64_t row = first + threadIdx.y;
    bool has_row = threadIdx.y == 0 && threadIdx.x < TILE_ROWS && own < s->rows;
    float sum = 0;

    for (int64_t begin = 0; begin < s->columns; begin += TILE_COLUMNS) {
        for (int64_t i = threadIdx.x; i < TILE_COLUMNS; i += WARP_LANES) {
            if (row < s->rows && begin + i < s->columns) {
                products[threadIdx.y][i] =
                    layer.a[row * s->columns + begin + i] * layer.ones[begin + i];
            }
        }
        __syncthreads();
        for (int64_t i = 0; has_row && i < TILE_COLUMNS && begin + i < s->columns; i++) {
            sum += products[threadIdx.x][i];
        }
        __syncthreads();
    }
    if (has_row) {
        layer.sums[own] = sum;
    }
}

static void compute_matmul(struct run *run)
{
    const struct matmul_reduce *layer = (const struct matmul_reduce *)run->state;

    gradient_multiply(layer, layer->shape.inputs);
    LAUNCH(sums_kernel, (unsigned)ceil_div(layer->shape.rows, TILE_ROWS),
           dim3(WARP_LANES, TILE_ROWS), 0, 0, *layer);
}

__global__ static void ones_kernel(float *ones, int64_t count)
{
    KERNEL_FOR(i, count)
    {
        ones[i] = 1;
    }
}

static void setup(struct run *run)
{
    struct matmul_reduce *layer = (struct matmul_reduce *)run_host_alloc(sizeof *layer);

    matmul_reduce_tensors(run, layer);
    layer->ones = run_alloc_f32(run, layer->shape.columns);
    LAUNCH_ITEMS(ones_kernel, layer->shape.columns, layer->ones, layer->shape.columns);
    run->state = layer;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "partial sums and those of the gradient of the bias meet in atomicAdd",
      .algorithm = "warps and example tasks, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "matmul",
      .algorithm = "matrix products, examples in order",
      .compute = compute_matmul },
};

CUDA_TWIN(matmul_reduce, 1, variants, setup);
