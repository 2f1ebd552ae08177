/* Gradient of max-pooling; workloads/maxpool_bwd.c defines the operation.  `ordered` adds
 * in the CPU's order, so it has the CPU's bits.  Which of several equal maxima wins in
 * cuDNN is not documented; inputs of the workload hold next to none. */
#include "cuda/cudnn/gradients.h"
#include "cuda/cudnn/usable.h"
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/window_max.h"
#include "workloads/maxpool_bwd.h"

struct maxpool_gpu : window_max {
    struct cudnn_pool cudnn;
};

__global__ static void scatter_kernel(struct window_max pool)
{
    KERNEL_FOR(window, pool_elements(&pool.shape))
    {
        window_scatter(&pool, window, window_winner(&pool, window));
    }
}

static void compute_unordered(struct run *run)
{
    const struct maxpool_gpu *pool = (const struct maxpool_gpu *)run->state;
    int64_t elements = pool_elements(&pool->shape);

    CUDA_TRY(cudaMemsetAsync(pool->dx, 0, (size_t)elements * sizeof(float)));
    LAUNCH_ITEMS(scatter_kernel, elements, *pool);
}

static void compute_ordered(struct run *run)
{
    const struct maxpool_gpu *pool = (const struct maxpool_gpu *)run->state;
    int64_t elements = pool_elements(&pool->shape);

    LAUNCH_ITEMS(window_winners_kernel, elements, *pool);
    LAUNCH_ITEMS(window_gather_kernel, elements, *pool);
}

static void compute_cudnn_max(struct run *run)
{
    cudnn_pool_compute(run, &((const struct maxpool_gpu *)run->state)->cudnn);
}

static void compute_cudnn_deterministic(struct run *run)
{
    compute_cudnn_max(run);
}

static void cudnn_setup(struct run *run, struct maxpool_gpu *pool)
{
    struct cudnn_pool *cudnn = &pool->cudnn;
    size_t bytes = (size_t)pool_elements(&pool->shape) * sizeof(float);

    cudnn->images = (int)pool->shape.images;
    cudnn->height = (int)pool->shape.height;
    cudnn->width = (int)pool->shape.width;
    cudnn->channels = (int)pool->shape.channels;
    cudnn->window = POOL_TAPS;
    cudnn->padding = POOL_TAPS / 2;
    cudnn->stride = 1;
    cudnn->deterministic = run->variant->compute == compute_cudnn_deterministic;
    cudnn->x = pool->x;
    cudnn->dy = pool->dy;
    cudnn->y = (float *)run_alloc(run, bytes);
    cudnn->dx = pool->dx;
    cudnn_pool_describe(run, cudnn);
}

static void setup(struct run *run)
{
    struct maxpool_gpu *pool = (struct maxpool_gpu *)run_host_alloc(sizeof *pool);

    window_max_tensors(run, pool);
    if (run->variant->unsupported) {
        cudnn_setup(run, pool);
    } else {
        int64_t taps = POOL_WINDOW * pool->shape.channels;
        float *filter = run_alloc_f32(run, taps);

        CUDA_TRY(cudaMemset(filter, 0, (size_t)taps * sizeof *filter));
        pool->filter = filter;
        pool->winners = run_alloc_i32(run, pool_elements(&pool->shape));
    }
    run->state = pool;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each window adds its gradient to its maximum with atomicAdd",
      .algorithm = "scatter, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .algorithm = "gather, row-major windows",
      .compute = compute_ordered },
    { .name = "cudnn_max",
      .summary = "cuDNN's CUDNN_POOLING_MAX itself",
      .models = "cudnnPoolingBackward, listed by cuDNN as not reproducible in this mode",
      .algorithm = "CUDNN_POOLING_MAX, NHWC, no workspace",
      .claim = "non-deterministic",
      .compute = compute_cudnn_max,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
    { .name = "cudnn_max_deterministic",
      .summary = "cuDNN's CUDNN_POOLING_MAX_DETERMINISTIC itself",
      .models = "what TF_CUDNN_DETERMINISTIC and TF_DETERMINISTIC_OPS select",
      .algorithm = "CUDNN_POOLING_MAX_DETERMINISTIC, NHWC, no workspace",
      .claim = "deterministic",
      .compute = compute_cudnn_deterministic,
      .library = "cuDNN",
      .unsupported = cudnn_unsupported },
};

CUDA_TWIN(maxpool_bwd, 1, variants, setup);
