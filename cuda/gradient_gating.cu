/* Gradients applied while others are being computed; workloads/gradient_gating.c defines
 * the operation.  A block is a task; blocks that run at one time race.  `ordered` adds in
 * the CPU's order, so it has the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "workloads/gradient_gating.h"

/* This thread's number of both gradients of operation K, from the variables as they are
 * now.  For a block of GATING_WIDTH threads. */
__device__ static void gradients_compute(const struct gating *gating, int64_t k,
                                         float *ret_own, float *ret_next)
{
    __shared__ float plus[GATING_WIDTH], minus[GATING_WIDTH];
    volatile const float *variables = gating->variables;
    const float *matrix =
        gating->matrices + k % GATING_MATRICES * GATING_WIDTH * GATING_WIDTH;
    float own = variables[k * GATING_WIDTH + threadIdx.x], own_sum = 0, next_sum = 0;
    float next = variables[(k + 1) % gating->operations * GATING_WIDTH + threadIdx.x];

    plus[threadIdx.x] = own + next;
    minus[threadIdx.x] = own - next;
    __syncthreads();
    for (int j = 0; j < GATING_WIDTH; j++) {
        float element = matrix[j * GATING_WIDTH + threadIdx.x];

        own_sum += element * plus[j];
        next_sum += element * minus[j];
    }
    *ret_own = own_sum;
    *ret_next = next_sum;
}

__device__ static void number_apply(const struct gating *gating, int64_t variable,
                                    float gradient)
{
    int64_t at = variable % gating->operations * GATING_WIDTH + threadIdx.x;

    atomicAdd(&gating->variables[at], -(GATING_RATE * gradient));
}

/* A block an operation. */
__global__ static void op_kernel(struct gating gating)
{
    int64_t k = blockIdx.x;
    float own, next;

    gradients_compute(&gating, k, &own, &next);
    number_apply(&gating, k, own);
    number_apply(&gating, k + 1, next);
}

/* A block a gradient: the even ones of w[k], the odd ones of w[k+1]. */
__global__ static void none_kernel(struct gating gating)
{
    int64_t k = blockIdx.x / 2, is_next = blockIdx.x % 2;
    float own, next;

    gradients_compute(&gating, k, &own, &next);
    number_apply(&gating, k + is_next, is_next ? next : own);
}

__global__ static void gradient_kernel(struct gating gating)
{
    float *to = gating.gradients + (int64_t)blockIdx.x * 2 * GATING_WIDTH + threadIdx.x;

    gradients_compute(&gating, blockIdx.x, to, to + GATING_WIDTH);
}

__global__ static void apply_kernel(struct gating gating)
{
    KERNEL_FOR(i, gating.operations * GATING_WIDTH)
    {
        int64_t n = gating.operations, k = i / GATING_WIDTH, number = i % GATING_WIDTH;
        int64_t before = (k + n - 1) % n;
        float value = gating.variables[i];

        value -= GATING_RATE * gating.gradients[2 * k * GATING_WIDTH + number];
        value -= GATING_RATE * gating.gradients[(2 * before + 1) * GATING_WIDTH + number];
        gating.variables[i] = value;
    }
}

static void initial_copy(const struct gating *gating)
{
    CUDA_TRY(cudaMemcpyAsync(gating->variables, gating->initial,
                             (size_t)(gating->operations * GATING_WIDTH) * sizeof(float),
                             cudaMemcpyDeviceToDevice));
}

static void compute_gate_none(struct run *run)
{
    const struct gating *gating = (const struct gating *)run->state;

    initial_copy(gating);
    for (int step = 0; step < GATING_STEPS; step++) {
        LAUNCH(none_kernel, (unsigned)(2 * gating->operations), GATING_WIDTH, 0, 0,
               *gating);
    }
}

static void compute_gate_op(struct run *run)
{
    const struct gating *gating = (const struct gating *)run->state;

    initial_copy(gating);
    for (int step = 0; step < GATING_STEPS; step++) {
        LAUNCH(op_kernel, (unsigned)gating->operations, GATING_WIDTH, 0, 0, *gating);
    }
}

static void compute_gate_graph(struct run *run)
{
    const struct gating *gating = (const struct gating *)run->state;

    initial_copy(gating);
    for (int step = 0; step < GATING_STEPS; step++) {
        LAUNCH(gradient_kernel, (unsigned)gating->operations, GATING_WIDTH, 0, 0,
               *gating);
        LAUNCH_ITEMS(apply_kernel, gating->operations * GATING_WIDTH, *gating);
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "GATE_OP: applied when both gradients of the operation are there",
      .algorithm = "gated by operation, atomicAdd",
      .control = true,
      .compute = compute_gate_op },
    { .name = "gate_none",
      .algorithm = "not gated, atomicAdd",
      .control = true,
      .compute = compute_gate_none },
    { .name = "ordered",
      .algorithm = "gated by graph, applied in order",
      .compute = compute_gate_graph },
};

CUDA_TWIN(gradient_gating, 1, variants, NULL);
