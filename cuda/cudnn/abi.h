/* cuDNN's types and their values, as far as reprod uses them, and the prototypes of the
 * functions of functions.h: the same in cuDNN 8 and 9; see
 * library/abi.h.  Descriptors of x, y, … are x_as, y_as, …; alpha and beta are pointers
 * to a float, to a double where data are double: the result is alpha times the new value
 * plus beta times the old one.
 *
 * Source: NVIDIA's cuDNN API reference. */
#ifndef CUDA_CUDNN_ABI_H
#define CUDA_CUDNN_ABI_H

#include <stddef.h>

#include "cuda/library/abi.h"

typedef struct cudnnContext *cudnnHandle_t;
typedef struct cudnnTensorStruct *cudnnTensorDescriptor_t;
typedef struct cudnnFilterStruct *cudnnFilterDescriptor_t;
typedef struct cudnnConvolutionStruct *cudnnConvolutionDescriptor_t;
typedef struct cudnnPoolingStruct *cudnnPoolingDescriptor_t;
typedef struct cudnnSpatialTransformerStruct *cudnnSpatialTransformerDescriptor_t;
typedef struct cudnnCTCLossStruct *cudnnCTCLossDescriptor_t;

/* Everything but success has another number in each major, and no name here. */
typedef unsigned cudnnStatus_t;
enum { CUDNN_STATUS_SUCCESS = 0 };

typedef enum {
    CUDNN_DATA_FLOAT = 0,
    CUDNN_DATA_DOUBLE = 1,
    CUDNN_DATA_HALF = 2,
    CUDNN_DATA_INT8 = 3,
    CUDNN_DATA_INT32 = 4,
    CUDNN_DATA_UINT8 = 6,
    CUDNN_DATA_BFLOAT16 = 9,
    CUDNN_DATA_INT64 = 10,
} cudnnDataType_t;

typedef enum {
    CUDNN_DEFAULT_MATH = 0,
    CUDNN_TENSOR_OP_MATH = 1,
    CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION = 2,
    CUDNN_FMA_MATH = 3,
} cudnnMathType_t;

typedef enum {
    CUDNN_NOT_PROPAGATE_NAN = 0,
    CUDNN_PROPAGATE_NAN = 1
} cudnnNanPropagation_t;

typedef enum { CUDNN_NON_DETERMINISTIC = 0, CUDNN_DETERMINISTIC = 1 } cudnnDeterminism_t;

typedef enum { CUDNN_TENSOR_NCHW = 0, CUDNN_TENSOR_NHWC = 1 } cudnnTensorFormat_t;

typedef enum {
    CUDNN_CONVOLUTION = 0,
    CUDNN_CROSS_CORRELATION = 1
} cudnnConvolutionMode_t;

typedef enum {
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM = 0,
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM = 1,
    CUDNN_CONVOLUTION_FWD_ALGO_GEMM = 2,
    CUDNN_CONVOLUTION_FWD_ALGO_DIRECT = 3,
    CUDNN_CONVOLUTION_FWD_ALGO_FFT = 4,
    CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING = 5,
    CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD = 6,
    CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED = 7,
    CUDNN_CONVOLUTION_FWD_ALGO_COUNT = 8,
} cudnnConvolutionFwdAlgo_t;

typedef enum {
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_0 = 0,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 = 1,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT = 2,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING = 3,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD = 4,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED = 5,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT = 6,
} cudnnConvolutionBwdDataAlgo_t;

typedef enum {
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 = 0,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 = 1,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT = 2,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3 = 3,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD = 4,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED = 5,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING = 6,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT = 7,
} cudnnConvolutionBwdFilterAlgo_t;

/* What cuDNN says of an algorithm of the pass. */
#define CUDNN_PERF(pass)                                                                 \
    typedef struct {                                                                     \
        cudnnConvolution##pass##Algo_t algo;                                             \
        cudnnStatus_t status; /* whether it can compute this */                          \
        float time;           /* ms; negative where nothing was measured */              \
        size_t memory;        /* of its workspace, bytes */                              \
        cudnnDeterminism_t determinism;                                                  \
        cudnnMathType_t mathType;                                                        \
        int reserved[3];                                                                 \
    } cudnnConvolution##pass##AlgoPerf_t
CUDNN_PERF(Fwd);
CUDNN_PERF(BwdData);
CUDNN_PERF(BwdFilter);
#undef CUDNN_PERF

typedef enum {
    CUDNN_POOLING_MAX = 0,
    CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING = 1,
    CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING = 2,
    CUDNN_POOLING_MAX_DETERMINISTIC = 3,
} cudnnPoolingMode_t;

typedef enum {
    CUDNN_BATCHNORM_PER_ACTIVATION = 0,
    CUDNN_BATCHNORM_SPATIAL = 1,
    CUDNN_BATCHNORM_SPATIAL_PERSISTENT = 2,
} cudnnBatchNormMode_t;

typedef enum { CUDNN_SAMPLER_BILINEAR = 0 } cudnnSamplerType_t;

typedef enum {
    CUDNN_CTC_LOSS_ALGO_DETERMINISTIC = 0,
    CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC = 1,
} cudnnCTCLossAlgo_t;

typedef enum {
    CUDNN_LOSS_NORMALIZATION_NONE = 0,
    CUDNN_LOSS_NORMALIZATION_SOFTMAX = 1,
} cudnnLossNormalizationMode_t;

typedef enum { /* 9 */
               CUDNN_CTC_ZERO_OOB_GRADIENTS = 0,
               CUDNN_CTC_SKIP_OOB_GRADIENTS = 1,
} cudnnCTCGradMode_t;

cudnnStatus_t cudnnGetProperty(enum library_property property, int *ret_value);
const char *cudnnGetErrorString(cudnnStatus_t status);
cudnnStatus_t cudnnCreate(cudnnHandle_t *ret_handle);

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *ret_tensor);
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor,
                                         cudnnTensorFormat_t format,
                                         cudnnDataType_t dtype, int images, int channels,
                                         int rows, int columns);
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor,
                                         cudnnDataType_t dtype, int rank,
                                         const int *extents, const int *strides);
cudnnStatus_t cudnnGetTensorSizeInBytes(cudnnTensorDescriptor_t tensor,
                                        size_t *ret_bytes);

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *ret_filter);
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter,
                                         cudnnDataType_t dtype,
                                         cudnnTensorFormat_t format, int out_channels,
                                         int in_channels, int rows, int columns);

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *ret_how);
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t how,
                                              int pad_rows, int pad_columns,
                                              int stride_rows, int stride_columns,
                                              int dilation_rows, int dilation_columns,
                                              cudnnConvolutionMode_t mode,
                                              cudnnDataType_t accumulator);
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t how,
                                          cudnnMathType_t math);
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t how, int groups);

cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(cudnnConvolutionDescriptor_t how,
                                                    cudnnTensorDescriptor_t x_as,
                                                    cudnnFilterDescriptor_t w_as,
                                                    int *ret_images, int *ret_channels,
                                                    int *ret_rows, int *ret_columns);

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_as, cudnnFilterDescriptor_t w_as,
    cudnnConvolutionDescriptor_t how, cudnnTensorDescriptor_t y_as, int room,
    int *ret_count, cudnnConvolutionFwdAlgoPerf_t *ret_list);
cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_as, const void *x,
    cudnnFilterDescriptor_t w_as, const void *w, cudnnConvolutionDescriptor_t how,
    cudnnTensorDescriptor_t y_as, void *y, int room, int *ret_count,
    cudnnConvolutionFwdAlgoPerf_t *ret_list, void *workspace, size_t workspace_bytes);
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_as, cudnnFilterDescriptor_t w_as,
    cudnnConvolutionDescriptor_t how, cudnnTensorDescriptor_t y_as,
    cudnnConvolutionFwdAlgo_t algorithm, size_t *ret_bytes);
cudnnStatus_t cudnnConvolutionForward(
    cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x_as, const void *x,
    cudnnFilterDescriptor_t w_as, const void *w, cudnnConvolutionDescriptor_t how,
    cudnnConvolutionFwdAlgo_t algorithm, void *workspace, size_t workspace_bytes,
    const void *beta, cudnnTensorDescriptor_t y_as, void *y);

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w_as, cudnnTensorDescriptor_t dy_as,
    cudnnConvolutionDescriptor_t how, cudnnTensorDescriptor_t dx_as, int room,
    int *ret_count, cudnnConvolutionBwdDataAlgoPerf_t *ret_list);
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w_as, const void *w,
    cudnnTensorDescriptor_t dy_as, const void *dy, cudnnConvolutionDescriptor_t how,
    cudnnTensorDescriptor_t dx_as, void *dx, int room, int *ret_count,
    cudnnConvolutionBwdDataAlgoPerf_t *ret_list, void *workspace, size_t workspace_bytes);
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w_as, cudnnTensorDescriptor_t dy_as,
    cudnnConvolutionDescriptor_t how, cudnnTensorDescriptor_t dx_as,
    cudnnConvolutionBwdDataAlgo_t algorithm, size_t *ret_bytes);
cudnnStatus_t cudnnConvolutionBackwardData(
    cudnnHandle_t handle, const void *alpha, cudnnFilterDescriptor_t w_as, const void *w,
    cudnnTensorDescriptor_t dy_as, const void *dy, cudnnConvolutionDescriptor_t how,
    cudnnConvolutionBwdDataAlgo_t algorithm, void *workspace, size_t workspace_bytes,
    const void *beta, cudnnTensorDescriptor_t dx_as, void *dx);

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_as, cudnnTensorDescriptor_t dy_as,
    cudnnConvolutionDescriptor_t how, cudnnFilterDescriptor_t dw_as, int room,
    int *ret_count, cudnnConvolutionBwdFilterAlgoPerf_t *ret_list);
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_as, const void *x,
    cudnnTensorDescriptor_t dy_as, const void *dy, cudnnConvolutionDescriptor_t how,
    cudnnFilterDescriptor_t dw_as, void *dw, int room, int *ret_count,
    cudnnConvolutionBwdFilterAlgoPerf_t *ret_list, void *workspace,
    size_t workspace_bytes);
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_as, cudnnTensorDescriptor_t dy_as,
    cudnnConvolutionDescriptor_t how, cudnnFilterDescriptor_t dw_as,
    cudnnConvolutionBwdFilterAlgo_t algorithm, size_t *ret_bytes);
cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x_as, const void *x,
    cudnnTensorDescriptor_t dy_as, const void *dy, cudnnConvolutionDescriptor_t how,
    cudnnConvolutionBwdFilterAlgo_t algorithm, void *workspace, size_t workspace_bytes,
    const void *beta, cudnnFilterDescriptor_t dw_as, void *dw);

cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t *ret_pooling);
cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t pooling,
                                          cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t nan, int window_rows,
                                          int window_columns, int pad_rows,
                                          int pad_columns, int stride_rows,
                                          int stride_columns);
cudnnStatus_t cudnnGetPooling2dForwardOutputDim(cudnnPoolingDescriptor_t pooling,
                                                cudnnTensorDescriptor_t x_as,
                                                int *ret_images, int *ret_channels,
                                                int *ret_rows, int *ret_columns);
cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, cudnnPoolingDescriptor_t pooling,
                                  const void *alpha, cudnnTensorDescriptor_t x_as,
                                  const void *x, const void *beta,
                                  cudnnTensorDescriptor_t y_as, void *y);
cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, cudnnPoolingDescriptor_t pooling,
                                   const void *alpha, cudnnTensorDescriptor_t y_as,
                                   const void *y, cudnnTensorDescriptor_t dy_as,
                                   const void *dy, cudnnTensorDescriptor_t x_as,
                                   const void *x, const void *beta,
                                   cudnnTensorDescriptor_t dx_as, void *dx);

cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t channels_as,
                                            cudnnTensorDescriptor_t x_as,
                                            cudnnBatchNormMode_t mode);
cudnnStatus_t cudnnBatchNormalizationBackward(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha_dx,
    const void *beta_dx, const void *alpha_parameters, const void *beta_parameters,
    cudnnTensorDescriptor_t x_as, const void *x, cudnnTensorDescriptor_t dy_as,
    const void *dy, cudnnTensorDescriptor_t dx_as, void *dx,
    cudnnTensorDescriptor_t channels_as, const void *scale, void *dscale, void *dbias,
    double epsilon, const void *mean, const void *inverse_deviation);

cudnnStatus_t cudnnCreateSpatialTransformerDescriptor(
    cudnnSpatialTransformerDescriptor_t *ret_transformer);
cudnnStatus_t
cudnnSetSpatialTransformerNdDescriptor(cudnnSpatialTransformerDescriptor_t transformer,
                                       cudnnSamplerType_t sampler, cudnnDataType_t dtype,
                                       int rank, const int *extents);
cudnnStatus_t cudnnSpatialTfSamplerBackward(
    cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t transformer,
    const void *alpha, cudnnTensorDescriptor_t x_as, const void *x, const void *beta,
    cudnnTensorDescriptor_t dx_as, void *dx, const void *alpha_dgrid,
    cudnnTensorDescriptor_t dy_as, const void *dy, const void *grid,
    const void *beta_dgrid, void *dgrid);

cudnnStatus_t cudnnCreateCTCLossDescriptor(cudnnCTCLossDescriptor_t *ret_ctc);
cudnnStatus_t cudnnSetCTCLossDescriptorEx(cudnnCTCLossDescriptor_t ctc,
                                          cudnnDataType_t accumulator,
                                          cudnnLossNormalizationMode_t normalization,
                                          cudnnNanPropagation_t nan);
cudnnStatus_t cudnnSetCTCLossDescriptor_v8(cudnnCTCLossDescriptor_t ctc,
                                           cudnnDataType_t accumulator,
                                           cudnnLossNormalizationMode_t normalization,
                                           cudnnNanPropagation_t nan, int most_labels);
cudnnStatus_t
cudnnGetCTCLossWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t logits_as,
                             cudnnTensorDescriptor_t gradient_as, const int *labels,
                             const int *label_lengths, const int *time_lengths,
                             cudnnCTCLossAlgo_t algorithm, cudnnCTCLossDescriptor_t ctc,
                             size_t *ret_bytes);
/* Labels and lengths are in host memory; in device memory for _v8. */
cudnnStatus_t cudnnCTCLoss(cudnnHandle_t handle, cudnnTensorDescriptor_t logits_as,
                           const void *logits, const int *labels,
                           const int *label_lengths, const int *time_lengths,
                           void *losses, cudnnTensorDescriptor_t gradient_as,
                           void *gradient, cudnnCTCLossAlgo_t algorithm,
                           cudnnCTCLossDescriptor_t ctc, void *workspace,
                           size_t workspace_bytes);
cudnnStatus_t cudnnGetCTCLossWorkspaceSize_v8(cudnnHandle_t handle,
                                              cudnnCTCLossAlgo_t algorithm,
                                              cudnnCTCLossDescriptor_t ctc,
                                              cudnnTensorDescriptor_t logits_as,
                                              cudnnTensorDescriptor_t gradient_as,
                                              size_t *ret_bytes);
cudnnStatus_t cudnnCTCLoss_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t algorithm,
                              cudnnCTCLossDescriptor_t ctc,
                              cudnnTensorDescriptor_t logits_as, const void *logits,
                              const int *labels, const int *label_lengths,
                              const int *time_lengths, void *losses,
                              cudnnTensorDescriptor_t gradient_as, void *gradient,
                              size_t workspace_bytes, void *workspace);

/* In some versions only. */
void cudnnGetLastErrorString(char *ret_text, size_t size);
cudnnStatus_t cudnnSetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t ctc,
                                           cudnnDataType_t accumulator,
                                           cudnnLossNormalizationMode_t normalization,
                                           cudnnCTCGradMode_t gradients, int most_labels);

#endif
