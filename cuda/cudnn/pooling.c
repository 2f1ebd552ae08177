#include "cuda/cudnn/pooling.h"

#include "cuda/cudnn/describe.h"

void cudnn_pool_describe(struct run *run, struct cudnn_pool *pool)
{
    pool->pixels = cudnn_tensor(run, CUDNN_TENSOR_NHWC, DTYPE_FLOAT32, pool->images,
                                pool->channels, pool->height, pool->width);
    pool->how = cudnn_pooling(
        run, pool->deterministic ? CUDNN_POOLING_MAX_DETERMINISTIC : CUDNN_POOLING_MAX,
        pool->window, pool->padding, pool->stride);
}

void cudnn_pool_compute(struct run *run, const struct cudnn_pool *pool)
{
    static const float one = 1, zero = 0;
    cudnnHandle_t handle = cudnn_handle(run);

    CUDNN_CALL(run, cudnnPoolingForward, handle, pool->how, &one, pool->pixels, pool->x,
               &zero, pool->pixels, pool->y);
    CUDNN_CALL(run, cudnnPoolingBackward, handle, pool->how, &one, pool->pixels, pool->y,
               pool->pixels, pool->dy, pool->pixels, pool->x, &zero, pool->pixels,
               pool->dx);
}
