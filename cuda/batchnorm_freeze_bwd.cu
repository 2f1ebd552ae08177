/* Gradients of batch normalization with frozen statistics;
 * workloads/batchnorm_freeze_bwd.c defines the operation.  `ordered` adds in the CPU's
 * order, so it has the CPU's bits. */
#include "cuda/kernels/batchnorm.h"

__global__ static void dx_kernel(struct norm norm)
{
    KERNEL_FOR(i, norm.rows * norm.channels)
    {
        int64_t c = i % norm.channels;

        norm.dx[i] = norm.dy[i] * (norm.scale[c] * norm.inv_std[c]);
    }
}

static void compute_unordered(struct run *run)
{
    const struct norm *norm = (const struct norm *)run->state;

    channel_sums_unordered<NORM_OF_CHANNEL>(norm);
    LAUNCH_ITEMS(dx_kernel, norm->rows * norm->channels, *norm);
}

static void compute_ordered(struct run *run)
{
    const struct norm *norm = (const struct norm *)run->state;

    channel_sums_ordered<NORM_OF_CHANNEL>(norm);
    LAUNCH_ITEMS(dx_kernel, norm->rows * norm->channels, *norm);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each thread sums 32 pixels of a channel, the sums meet in atomicAdd",
      .algorithm = "row tasks, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .algorithm = "64 row slots, fixed tree",
      .compute = compute_ordered },
};

CUDA_TWIN(batchnorm_freeze_bwd, 1, variants, norm_setup);
