/* Gradients of batch normalization in training; workloads/batchnorm_bwd.c defines the
 * operation.  `ordered` adds in the CPU's order, so it has the CPU's bits. */
#include "cuda/cudnn/gradients.h"
#include "cuda/cudnn/usable.h"
#include "cuda/kernels/batchnorm.h"

__global__ static void dx_kernel(struct norm norm)
{
    float rows = (float)norm.rows;

    KERNEL_FOR(i, norm.rows * norm.channels)
    {
        int64_t c = i % norm.channels;
        float xhat = channel_xhat<NORM_OF_CHANNEL>(&norm, i / norm.channels, c);

        norm.dx[i] = norm.scale[c] * norm.inv_std[c] *
                     (norm.dy[i] - (norm.doffset[c] + xhat * norm.dscale[c]) / rows);
    }
}

static void compute_ordered(struct run *run)
{
    const struct norm *norm = (const struct norm *)run->state;

    channel_sums_ordered<NORM_OF_CHANNEL>(norm);
    LAUNCH_ITEMS(dx_kernel, norm->rows * norm->channels, *norm);
}

static void compute_unordered(struct run *run)
{
    const struct norm *norm = (const struct norm *)run->state;

    channel_sums_unordered<NORM_OF_CHANNEL>(norm);
    LAUNCH_ITEMS(dx_kernel, norm->rows * norm->channels, *norm);
}

static void compute_spatial(struct run *run)
{
    cudnn_norm_compute(run, (const struct cudnn_norm *)run->state);
}

static void compute_persistent(struct run *run)
{
    compute_spatial(run);
}

static void setup(struct run *run)
{
    const struct norm_shape *s = (const struct norm_shape *)run->size->params;
    const struct norm *norm;
    struct cudnn_norm *cudnn;

    norm_setup(run);
    if (!run->variant->unsupported) {
        return;
    }
    norm = (const struct norm *)run->state;
    cudnn = (struct cudnn_norm *)run_host_alloc(sizeof *cudnn);
    cudnn->images = (int)s->images;
    cudnn->height = (int)s->height;
    cudnn->width = (int)s->width;
    cudnn->channels = (int)s->channels;
    cudnn->persistent = run->variant->compute == compute_persistent;
    cudnn->epsilon = NORM_EPSILON;
    cudnn->x = norm->x;
    cudnn->dy = norm->dy;
    cudnn->scale = norm->scale;
    cudnn->mean = norm->mean;
    cudnn->inv_std = norm->inv_std;
    cudnn->dx = norm->dx;
    cudnn->dscale = norm->dscale;
    cudnn->doffset = norm->doffset;
    cudnn_norm_describe(run, cudnn);
    run->state = cudnn;
}

static const struct workload_variant variants[] = {
    { .name = "ordered",
      .algorithm = "64 row slots, fixed tree",
      .compute = compute_ordered },
    { .name = "unordered",
      .summary = "each thread sums 32 pixels of a channel, the sums meet in atomicAdd",
      .algorithm = "row tasks, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "cudnn_spatial",
      .summary = "cuDNN's CUDNN_BATCHNORM_SPATIAL itself",
      .models = "cudnnBatchNormalizationBackward, not among what cuDNN lists as not "
                "reproducible",
      .algorithm = "CUDNN_BATCHNORM_SPATIAL, NHWC, no workspace",
      .claim = "deterministic",
      .compute = compute_spatial,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
    { .name = "cudnn_persistent",
      .summary = "cuDNN's CUDNN_BATCHNORM_SPATIAL_PERSISTENT itself",
      .models = "cudnnBatchNormalizationBackward, off by default in TensorFlow",
      .algorithm = "CUDNN_BATCHNORM_SPATIAL_PERSISTENT, NHWC, no workspace",
      .claim = "deterministic",
      .compute = compute_persistent,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
};

CUDA_TWIN(batchnorm_bwd, 1, variants, setup);
