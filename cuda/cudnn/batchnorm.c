#include "cuda/cudnn/batchnorm.h"

#include "cuda/cudnn/describe.h"

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
    static const float one = 1, zero = 0;

    CUDNN_CALL(run, cudnnBatchNormalizationBackward, cudnn_handle(run), mode(norm), &one,
               &zero, &one, &zero, norm->pixels, norm->x, norm->pixels, norm->dy,
               norm->pixels, norm->dx, norm->channel_values, norm->scale, norm->dscale,
               norm->doffset, norm->epsilon, norm->mean, norm->inv_std);
}
