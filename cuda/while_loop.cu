/* A loop whose body changes a variable; workloads/while_loop.c defines the operation.  A
 * block is an iteration in flight, a thread an element of the variable.  `ordered` has
 * the CPU's bits: only the additions to the variable come one after the other. */
#include "cuda/kernels/column_sum.h"
#include "cuda/kernels/kernel.h"
#include "workloads/while_loop.h"

enum {
    STRIP = 32,            /* iterations whose rows a block computes */
    FOURS = LOOP_DEPTH / 4 /* of inputs */
};

static_assert((int)LOOP_WIDTH == (int)KERNEL_THREADS, "a thread an element");

struct while_loop {
    int64_t iterations;
    const float4 *inputs; /* [iterations][LOOP_DEPTH / 4] */
    const float *weights; /* [LOOP_DEPTH][LOOP_WIDTH] */
    float *variable;      /* [LOOP_WIDTH] */
    float *rows;          /* [iterations][LOOP_WIDTH] */
};

/* The thread's column of the weights. */
__device__ static void weights_read(const struct while_loop *loop,
                                    float ret_own[LOOP_DEPTH])
{
#pragma unroll
    for (int k = 0; k < LOOP_DEPTH; k++) {
        ret_own[k] = loop->weights[k * LOOP_WIDTH + threadIdx.x];
    }
}

/* The thread's element of what the body computes in ITERATION. */
__device__ static float body(const struct while_loop *loop, int64_t iteration,
                             const float own[LOOP_DEPTH])
{
    const float4 *inputs = loop->inputs + iteration * FOURS;
    float sum = 0;

#pragma unroll
    for (int k = 0; k < FOURS; k++) {
        float4 input = inputs[k];

        sum += input.x * own[k * 4];
        sum += input.y * own[k * 4 + 1];
        sum += input.z * own[k * 4 + 2];
        sum += input.w * own[k * 4 + 3];
    }
    return sum;
}

__global__ static void flight_kernel(struct while_loop loop)
{
    float own[LOOP_DEPTH];

    weights_read(&loop, own);
    for (int64_t i = blockIdx.x; i < loop.iterations; i += gridDim.x) {
        atomicAdd(&loop.variable[threadIdx.x], body(&loop, i, own));
    }
}

static void compute_unordered(struct run *run)
{
    const struct while_loop *loop = (const struct while_loop *)run->state;

    CUDA_TRY(cudaMemsetAsync(loop->variable, 0, LOOP_WIDTH * sizeof(float)));
    LAUNCH(flight_kernel, LOOP_PARALLEL, KERNEL_THREADS, 0, 0, *loop);
}

__global__ static void rows_kernel(struct while_loop loop)
{
    int64_t begin = (int64_t)blockIdx.x * STRIP;
    float own[LOOP_DEPTH];

    weights_read(&loop, own);
    for (int64_t i = begin; i < begin + STRIP && i < loop.iterations; i++) {
        loop.rows[i * LOOP_WIDTH + threadIdx.x] = body(&loop, i, own);
    }
}

static void compute_ordered(struct run *run)
{
    const struct while_loop *loop = (const struct while_loop *)run->state;
    const struct column_sum sum = {
        .count = loop->iterations,
        .width = LOOP_WIDTH,
        .rows = loop->rows,
        .sums = loop->variable,
    };

    LAUNCH(rows_kernel, (unsigned)ceil_div(loop->iterations, STRIP), KERNEL_THREADS, 0, 0,
           *loop);
    column_sum_add(&sum);
}

static void setup(struct run *run)
{
    struct while_loop *loop = (struct while_loop *)run_host_alloc(sizeof *loop);
    int64_t inputs[] = { *(const int64_t *)run->size->params, LOOP_DEPTH };
    int64_t weights[] = { LOOP_DEPTH, LOOP_WIDTH };

    loop->iterations = inputs[0];
    loop->inputs =
        (const float4 *)run_input(run, "inputs", run->dtype, 2, inputs, FILL_WIDE, 0)
            ->data;
    loop->weights = run_input_f32(run, "weights", 2, weights, FILL_UNIFORM);
    loop->variable = run_output_f32(run, "variable", 1, &weights[1]);
    loop->rows = run_alloc_f32(run, inputs[0] * LOOP_WIDTH);
    run->state = loop;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "10 iterations in flight, each a block, add to the variable with "
                 "atomicAdd",
      .algorithm = "iterations in parallel, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "products in parallel, added to the variable one iteration after the "
                 "other",
      .algorithm = "iterations in order",
      .compute = compute_ordered },
};

CUDA_TWIN(while_loop, 1, variants, setup);
