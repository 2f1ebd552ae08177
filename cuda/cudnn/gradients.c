#include "cuda/cudnn/gradients.h"

#include "cuda/cudnn/describe.h"

static const float one = 1, zero = 0;

static cudnnBatchNormMode_t mode(const struct cudnn_norm *norm)
{
    return norm->persistent ? CUDNN_BATCHNORM_SPATIAL_PERSISTENT
                            : CUDNN_BATCHNORM_SPATIAL;
}

void cudnn_norm_describe(struct run *run, struct cudnn_norm *norm)
{
    norm->pixels = cudnn_tensor(run, CUDNN_TENSOR_NHWC, DTYPE_FLOAT32, norm->images,
                                norm->channels, norm->height, norm->width);
    CUDNN_CALL(run, cudnnCreateTensorDescriptor, &norm->channel_values);
    CUDNN_CALL(run, cudnnDeriveBNTensorDescriptor, norm->channel_values, norm->pixels,
               mode(norm));
}

void cudnn_norm_compute(struct run *run, const struct cudnn_norm *norm)
{
    CUDNN_CALL(run, cudnnBatchNormalizationBackward, cudnn_handle(run), mode(norm), &one,
               &zero, &one, &zero, norm->pixels, norm->x, norm->pixels, norm->dy,
               norm->pixels, norm->dx, norm->channel_values, norm->scale, norm->dscale,
               norm->doffset, norm->epsilon, norm->mean, norm->inv_std);
}

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
    cudnnHandle_t handle = cudnn_handle(run);

    CUDNN_CALL(run, cudnnPoolingForward, handle, pool->how, &one, pool->pixels, pool->x,
               &zero, pool->pixels, pool->y);
    CUDNN_CALL(run, cudnnPoolingBackward, handle, pool->how, &one, pool->pixels, pool->y,
               pool->pixels, pool->dy, pool->pixels, pool->x, &zero, pool->pixels,
               pool->dx);
}

void cudnn_sampler_describe(struct run *run, struct cudnn_sampler *sampler)
{
    const int result[] = { sampler->images, sampler->channels, 1, sampler->samples };

    sampler->x_as = cudnn_tensor(run, CUDNN_TENSOR_NCHW, DTYPE_FLOAT32, sampler->images,
                                 sampler->channels, sampler->height, sampler->width);
    sampler->dy_as = cudnn_tensor(run, CUDNN_TENSOR_NCHW, DTYPE_FLOAT32, sampler->images,
                                  sampler->channels, 1, sampler->samples);
    CUDNN_CALL(run, cudnnCreateSpatialTransformerDescriptor, &sampler->how);
    CUDNN_CALL(run, cudnnSetSpatialTransformerNdDescriptor, sampler->how,
               CUDNN_SAMPLER_BILINEAR, CUDNN_DATA_FLOAT, COUNT_OF(result), result);
}

void cudnn_sampler_compute(struct run *run, const struct cudnn_sampler *sampler)
{
    CUDNN_CALL(run, cudnnSpatialTfSamplerBackward, cudnn_handle(run), sampler->how, &one,
               sampler->x_as, sampler->x, &zero, sampler->x_as, sampler->dx, &one,
               sampler->dy_as, sampler->dy, sampler->grid, &zero, sampler->dgrid);
}
