#include "cuda/cudnn/describe.h"

cudnnHandle_t cudnn_handle(struct run *run)
{
    static cudnnHandle_t handle;

    if (!handle) {
        CUDNN_CALL(run, cudnnCreate, &handle);
    }
    return handle;
}

cudnnDataType_t cudnn_dtype(struct run *run, enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_FLOAT32:
        return CUDNN_DATA_FLOAT;
    case DTYPE_FLOAT64:
        return CUDNN_DATA_DOUBLE;
    case DTYPE_FLOAT16:
        return CUDNN_DATA_HALF;
    case DTYPE_BFLOAT16:
        return CUDNN_DATA_BFLOAT16;
    case DTYPE_INT32:
        return CUDNN_DATA_INT32;
    default:
        run_unsupported(run, "cuDNN has no data type for %s", dtype_name(dtype));
    }
}

cudnnTensorDescriptor_t cudnn_tensor(struct run *run, cudnnTensorFormat_t order,
                                     enum dtype dtype, int images, int channels, int rows,
                                     int columns)
{
    cudnnTensorDescriptor_t tensor;

    CUDNN_CALL(run, cudnnCreateTensorDescriptor, &tensor);
    CUDNN_CALL(run, cudnnSetTensor4dDescriptor, tensor, order, cudnn_dtype(run, dtype),
               images, channels, rows, columns);
    return tensor;
}

cudnnTensorDescriptor_t cudnn_tensor_nd(struct run *run, enum dtype dtype, int rank,
                                        const int *extents)
{
    cudnnTensorDescriptor_t tensor;
    int strides[TENSOR_RANK_MAX];
    int stride = 1;

    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= extents[i];
    }
    CUDNN_CALL(run, cudnnCreateTensorDescriptor, &tensor);
    CUDNN_CALL(run, cudnnSetTensorNdDescriptor, tensor, cudnn_dtype(run, dtype), rank,
               extents, strides);
    return tensor;
}

cudnnFilterDescriptor_t cudnn_filter(struct run *run, cudnnTensorFormat_t order,
                                     enum dtype dtype, int out_channels, int in_channels,
                                     int rows, int columns)
{
    cudnnFilterDescriptor_t filter;

    CUDNN_CALL(run, cudnnCreateFilterDescriptor, &filter);
    CUDNN_CALL(run, cudnnSetFilter4dDescriptor, filter, cudnn_dtype(run, dtype), order,
               out_channels, in_channels, rows, columns);
    return filter;
}

cudnnConvolutionDescriptor_t
cudnn_convolution(struct run *run, enum dtype dtype,
                  const struct cudnn_convolution_shape *shape)
{
    cudnnConvolutionDescriptor_t convolution;
    cudnnDataType_t accumulator =
        dtype == DTYPE_FLOAT64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;

    CUDNN_CALL(run, cudnnCreateConvolutionDescriptor, &convolution);
    CUDNN_CALL(run, cudnnSetConvolution2dDescriptor, convolution, shape->padding,
               shape->padding, shape->stride, shape->stride, shape->dilation,
               shape->dilation, CUDNN_CROSS_CORRELATION, accumulator);
    CUDNN_CALL(run, cudnnSetConvolutionGroupCount, convolution, shape->groups);
    CUDNN_CALL(run, cudnnSetConvolutionMathType, convolution, shape->math);
    return convolution;
}

cudnnPoolingDescriptor_t cudnn_pooling(struct run *run, cudnnPoolingMode_t mode,
                                       int window, int padding, int stride)
{
    cudnnPoolingDescriptor_t pooling;

    CUDNN_CALL(run, cudnnCreatePoolingDescriptor, &pooling);
    CUDNN_CALL(run, cudnnSetPooling2dDescriptor, pooling, mode, CUDNN_PROPAGATE_NAN,
               window, window, padding, padding, stride, stride);
    return pooling;
}

cudnnCTCLossDescriptor_t cudnn_ctc(struct run *run, int most_labels)
{
    enum { LABELS_MAX = 255 };
    cudnnCTCLossDescriptor_t ctc;

    if (most_labels > LABELS_MAX) {
        run_unsupported(run, "cuDNN's CTC loss takes labels of at most %d, not %d",
                        LABELS_MAX, most_labels);
    }
    CUDNN_CALL(run, cudnnCreateCTCLossDescriptor, &ctc);
    if (cudnn_api()->cudnnSetCTCLossDescriptor_v9) {
        CUDNN_CALL(run, cudnnSetCTCLossDescriptor_v9, ctc, CUDNN_DATA_FLOAT,
                   CUDNN_LOSS_NORMALIZATION_SOFTMAX, CUDNN_CTC_ZERO_OOB_GRADIENTS,
                   most_labels);
    } else {
        CUDNN_CALL(run, cudnnSetCTCLossDescriptor_v8, ctc, CUDNN_DATA_FLOAT,
                   CUDNN_LOSS_NORMALIZATION_SOFTMAX, CUDNN_NOT_PROPAGATE_NAN,
                   most_labels);
    }
    return ctc;
}

void *cudnn_workspace(struct run *run, size_t bytes)
{
    return bytes ? run_alloc(run, bytes) : NULL;
}
