/* Gradient of max-pooling; workloads/maxpool_bwd.c defines the operation.  `ordered` adds
 * in the CPU's order, so it has the CPU's bits.  Which of several equal maxima wins in
 * cuDNN is not documented; inputs of the workload hold next to none. */
#include "cuda/cudnn/gradients.h"
#include "cuda/cudnn/usable.h"
#include "cuda/kernels/kernel.h"
#include "workloads/maxpool_bwd.h"

#include <math.h>

struct maxpool_bwd {
    struct pool_shape shape;
    const float *x, *dy;
    float *dx;
    int32_t *winners; /* for each window and channel: the tap (0 … 8) of its maximum */
    struct cudnn_pool cudnn;
};

/* One element of an image batch: a window of the output, or a pixel of the input. */
struct place {
    int64_t image, row, column, channel;
};

__host__ __device__ static int64_t element_count(const struct pool_shape *shape)
{
    return shape->images * shape->height * shape->width * shape->channels;
}

__device__ static struct place place_of(const struct pool_shape *shape, int64_t i)
{
    struct place place;

    place.channel = i % shape->channels;
    place.column = i / shape->channels % shape->width;
    place.row = i / shape->channels / shape->width % shape->height;
    place.image = i / shape->channels / shape->width / shape->height;
    return place;
}

/* The element that tap TAP of the window at PLACE falls on; -1 outside the image. */
__device__ static int64_t tap_element(const struct pool_shape *shape, struct place place,
                                      int64_t tap)
{
    int64_t pixel = pool_tap_pixel(shape, place.row, place.column, tap);

    if (pixel < 0) {
        return -1;
    }
    return (place.image * shape->height * shape->width + pixel) * shape->channels +
           place.channel;
}

__device__ static int32_t winner_of(const struct maxpool_bwd *pool, int64_t window)
{
    struct place place = place_of(&pool->shape, window);
    float best = -INFINITY;
    int32_t winner = POOL_CENTRE;

    for (int32_t tap = 0; tap < POOL_WINDOW; tap++) {
        int64_t at = tap_element(&pool->shape, place, tap);

        if (at >= 0 && pool->x[at] > best) {
            best = pool->x[at];
            winner = tap;
        }
    }
    return winner;
}

__global__ static void scatter_kernel(struct maxpool_bwd pool)
{
    KERNEL_FOR(window, element_count(&pool.shape))
    {
        int64_t to = tap_element(&pool.shape, place_of(&pool.shape, window),
                                 winner_of(&pool, window));

        atomicAdd(&pool.dx[to], pool.dy[window]);
    }
}

static void compute_unordered(struct run *run)
{
    const struct maxpool_bwd *pool = (const struct maxpool_bwd *)run->state;
    int64_t elements = element_count(&pool->shape);

    CUDA_TRY(cudaMemsetAsync(pool->dx, 0, (size_t)elements * sizeof(float)));
    LAUNCH_ITEMS(scatter_kernel, elements, *pool);
}

__global__ static void winner_kernel(struct maxpool_bwd pool)
{
    KERNEL_FOR(window, element_count(&pool.shape))
    {
        pool.winners[window] = winner_of(&pool, window);
    }
}

/* The gradient of one pixel: its windows in row-major order, each a term or a zero.  The
 * window one step up and left sees this pixel one step down and right. */
__global__ static void gather_kernel(struct maxpool_bwd pool)
{
    KERNEL_FOR(pixel, element_count(&pool.shape))
    {
        struct place place = place_of(&pool.shape, pixel);
        float sum = 0;

        for (int32_t tap = 0; tap < POOL_WINDOW; tap++) {
            int64_t window = tap_element(&pool.shape, place, tap);

            if (window >= 0) {
                sum += pool.winners[window] == POOL_WINDOW - 1 - tap ? pool.dy[window]
                                                                     : 0.0f;
            }
        }
        pool.dx[pixel] = sum;
    }
}

static void compute_ordered(struct run *run)
{
    const struct maxpool_bwd *pool = (const struct maxpool_bwd *)run->state;
    int64_t elements = element_count(&pool->shape);

    LAUNCH_ITEMS(winner_kernel, elements, *pool);
    LAUNCH_ITEMS(gather_kernel, elements, *pool);
}

static void compute_cudnn_max(struct run *run)
{
    cudnn_pool_compute(run, &((const struct maxpool_bwd *)run->state)->cudnn);
}

static void compute_cudnn_deterministic(struct run *run)
{
    compute_cudnn_max(run);
}

static void cudnn_setup(struct run *run, struct maxpool_bwd *pool)
{
    struct cudnn_pool *cudnn = &pool->cudnn;
    size_t bytes = (size_t)element_count(&pool->shape) * sizeof(float);

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
    const struct pool_shape *shape = (const struct pool_shape *)run->size->params;
    struct maxpool_bwd *pool = (struct maxpool_bwd *)run_host_alloc(sizeof *pool);
    int64_t extents[] = { shape->images, shape->height, shape->width, shape->channels };

    pool->shape = *shape;
    pool->x = run_input_f32(run, "x", 4, extents, FILL_UNIFORM);
    pool->dy = run_input_f32(run, "dy", 4, extents, FILL_WIDE);
    pool->dx = run_output_f32(run, "dx", 4, extents);
    if (run->variant->unsupported) {
        cudnn_setup(run, pool);
    } else {
        pool->winners = (int32_t *)run_alloc(run, (size_t)element_count(shape) *
                                                      sizeof *pool->winners);
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
