/* Gradients of batch normalization in training; workloads/batchnorm_bwd.c defines the
 * operation.  `ordered` adds in the order of the CPU's, so it has its bits. */
#include "cuda/batchnorm.h"

__global__ static void dx_kernel(struct norm norm)
{
    float rows = (float)norm.rows;

    KERNEL_FOR(i, norm.rows * norm.channels)
    {
        int64_t c = i % norm.channels;

        norm.dx[i] = norm.scale[c] * norm.inv_std[c] *
                     (norm.dy[i] -
                      (norm.doffset[c] + norm_xhat(&norm, i) * norm.dscale[c]) / rows);
    }
}

static void compute_ordered(struct run *run)
{
    const struct norm *norm = (const struct norm *)run->state;

    norm_sums_ordered(norm);
    LAUNCH_ITEMS(dx_kernel, norm->rows * norm->channels, *norm);
}

static void compute_unordered(struct run *run)
{
    const struct norm *norm = (const struct norm *)run->state;

    norm_sums_unordered(norm);
    LAUNCH_ITEMS(dx_kernel, norm->rows * norm->channels, *norm);
}

static const struct workload_variant variants[] = {
    { .name = "ordered",
      .summary = "64 fixed groups of pixels, joined by a fixed tree",
      .models = "cudnnBatchNormalizationBackward, CUDNN_BATCHNORM_SPATIAL: documented "
                "to be deterministic",
      .algorithm = "64 row slots, fixed tree",
      .compute = compute_ordered },
    { .name = "unordered",
      .summary = "each thread sums 32 pixels of a channel, the sums meet in atomicAdd",
      .models = "what slide 32 saw: back-propagation that differed every ten steps",
      .algorithm = "row tasks, atomicAdd",
      .control = true,
      .compute = compute_unordered },
};

static const struct workload batchnorm_bwd_cuda = {
    .name = "batchnorm_bwd",
    .version = 1,
    .backend = "cuda",
    .variants = variants,
    .variant_count = COUNT_OF(variants),
    .setup = norm_setup,
};
WORKLOAD_REGISTER(batchnorm_bwd_cuda);
