#include "cuda/cudnn/sampler.h"

#include "cuda/cudnn/describe.h"

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
    static const float one = 1, zero = 0;

    CUDNN_CALL(run, cudnnSpatialTfSamplerBackward, cudnn_handle(run), sampler->how, &one,
               sampler->x_as, sampler->x, &zero, sampler->x_as, sampler->dx, &one,
               sampler->dy_as, sampler->dy, sampler->grid, &zero, sampler->dgrid);
}
