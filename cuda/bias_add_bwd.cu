/* Bias gradient; workloads/bias_add_bwd.c defines the operation.  `ordered` and `patched`
 * add in the CPU's order, so they have the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/tree.h"
#include "workloads/bias_add_bwd.h"

enum {
    TASK_ROWS = 64, /* summed by a thread before its atomicAdd */
    JOIN_SIDE = 32  /* channels of a thread block, and members of a tree */
};

/* Each thread sums one channel over TASK_ROWS rows; the sums meet in atomicAdd. */
__global__ static void atomic_kernel(struct bias_add_bwd bias, int64_t tasks)
{
    KERNEL_FOR(i, tasks * bias.channels)
    {
        int64_t channel = i % bias.channels, begin = i / bias.channels * TASK_ROWS;
        float sum = 0;

        for (int64_t row = begin; row < begin + TASK_ROWS && row < bias.rows; row++) {
            sum += bias.dy[row * bias.channels + channel];
        }
        atomicAdd(&bias.db[channel], sum);
    }
}

static void compute_unordered(struct run *run)
{
    const struct bias_add_bwd *bias = (const struct bias_add_bwd *)run->state;
    int64_t tasks = ceil_div(bias->rows, TASK_ROWS);

    CUDA_TRY(cudaMemsetAsync(bias->db, 0, (size_t)bias->channels * sizeof(float)));
    LAUNCH_ITEMS(atomic_kernel, tasks * bias->channels, *bias, tasks);
}

/* One db for each of BIAS_SLOTS groups of rows. */
__global__ static void slot_kernel(struct bias_add_bwd bias)
{
    KERNEL_FOR(i, BIAS_SLOTS * bias.channels)
    {
        int64_t channel = i % bias.channels, slot = i / bias.channels;
        int64_t end = (slot + 1) * bias.rows / BIAS_SLOTS;
        float sum = 0;

        for (int64_t row = slot * bias.rows / BIAS_SLOTS; row < end; row++) {
            sum += bias.dy[row * bias.channels + channel];
        }
        bias.parts[i] = sum;
    }
}

/* One db for each lane of each block of rows. */
__global__ static void lane_kernel(struct bias_add_bwd bias, int64_t lanes)
{
    KERNEL_FOR(i, lanes * bias.channels)
    {
        int64_t channel = i % bias.channels, lane = i / bias.channels;
        int64_t begin = lane / BIAS_LANES * BIAS_BLOCK_ROWS;
        float sum = 0;

        for (int64_t row = begin + lane % BIAS_LANES;
             row < begin + BIAS_BLOCK_ROWS && row < bias.rows; row += BIAS_LANES) {
            sum += bias.dy[row * bias.channels + channel];
        }
        bias.parts[i] = sum;
    }
}

/* Joins COUNT parts by the fixed tree; threadIdx.x is the channel, neighbours read
 * neighbours. */
__global__ static void join_kernel(struct bias_add_bwd bias, int64_t count)
{
    int64_t channel = (int64_t)blockIdx.x * JOIN_SIDE + threadIdx.x;
    bool has_tree = channel < bias.channels;

    tree_sum_in_block(bias.parts + channel, count, bias.channels,
                      has_tree ? threadIdx.y : count, JOIN_SIDE);
    if (has_tree && threadIdx.y == 0) {
        bias.db[channel] = bias.parts[channel];
    }
}

static void join(const struct bias_add_bwd *bias, int64_t count)
{
    unsigned grid = (unsigned)ceil_div(bias->channels, JOIN_SIDE);

    LAUNCH(join_kernel, grid, dim3(JOIN_SIDE, JOIN_SIDE), 0, 0, *bias, count);
}

static void compute_ordered(struct run *run)
{
    const struct bias_add_bwd *bias = (const struct bias_add_bwd *)run->state;

    LAUNCH_ITEMS(slot_kernel, BIAS_SLOTS * bias->channels, *bias);
    join(bias, BIAS_SLOTS);
}

static void compute_patched(struct run *run)
{
    const struct bias_add_bwd *bias = (const struct bias_add_bwd *)run->state;
    int64_t lanes = ceil_div(bias->rows, BIAS_BLOCK_ROWS) * BIAS_LANES;

    LAUNCH_ITEMS(lane_kernel, lanes * bias->channels, *bias, lanes);
    join(bias, lanes);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each thread sums 64 rows of a channel, the sums meet in atomicAdd",
      .algorithm = "row tasks, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .algorithm = "64 row slots, fixed tree",
      .compute = compute_ordered },
    { .name = "patched",
      .algorithm = "blocks of 256 rows, 16 lanes, fixed tree",
      .compute = compute_patched },
};

CUDA_TWIN(bias_add_bwd, 1, variants, NULL);
