/* The functions of cuDNN that are used, by name: X(name).  No header of cuDNN is needed
 * to read this list.
 *
 * Those of CUDNN_FUNCTIONS are in cuDNN 8 and 9 with the same prototypes; a library
 * without one of them is not used.  Those of CUDNN_OPTIONAL_FUNCTIONS are in some
 * versions only. */
#ifndef CUDA_CUDNN_FUNCTIONS_H
#define CUDA_CUDNN_FUNCTIONS_H

#define CUDNN_FUNCTIONS(X)                                                               \
    X(cudnnGetProperty)                                                                  \
    X(cudnnGetErrorString)                                                               \
    X(cudnnCreate)                                                                       \
    X(cudnnCreateTensorDescriptor)                                                       \
    X(cudnnSetTensor4dDescriptor)                                                        \
    X(cudnnSetTensorNdDescriptor)                                                        \
    X(cudnnGetTensorSizeInBytes)                                                         \
    X(cudnnCreateFilterDescriptor)                                                       \
    X(cudnnSetFilter4dDescriptor)                                                        \
    X(cudnnCreateConvolutionDescriptor)                                                  \
    X(cudnnSetConvolution2dDescriptor)                                                   \
    X(cudnnSetConvolutionMathType)                                                       \
    X(cudnnSetConvolutionGroupCount)                                                     \
    X(cudnnGetConvolution2dForwardOutputDim)                                             \
    X(cudnnGetConvolutionForwardAlgorithm_v7)                                            \
    X(cudnnFindConvolutionForwardAlgorithmEx)                                            \
    X(cudnnGetConvolutionForwardWorkspaceSize)                                           \
    X(cudnnConvolutionForward)                                                           \
    X(cudnnGetConvolutionBackwardDataAlgorithm_v7)                                       \
    X(cudnnFindConvolutionBackwardDataAlgorithmEx)                                       \
    X(cudnnGetConvolutionBackwardDataWorkspaceSize)                                      \
    X(cudnnConvolutionBackwardData)                                                      \
    X(cudnnGetConvolutionBackwardFilterAlgorithm_v7)                                     \
    X(cudnnFindConvolutionBackwardFilterAlgorithmEx)                                     \
    X(cudnnGetConvolutionBackwardFilterWorkspaceSize)                                    \
    X(cudnnConvolutionBackwardFilter)                                                    \
    X(cudnnCreatePoolingDescriptor)                                                      \
    X(cudnnSetPooling2dDescriptor)                                                       \
    X(cudnnGetPooling2dForwardOutputDim)                                                 \
    X(cudnnPoolingForward)                                                               \
    X(cudnnPoolingBackward)                                                              \
    X(cudnnDeriveBNTensorDescriptor)                                                     \
    X(cudnnBatchNormalizationBackward)                                                   \
    X(cudnnCreateSpatialTransformerDescriptor)                                           \
    X(cudnnSetSpatialTransformerNdDescriptor)                                            \
    X(cudnnSpatialTfSamplerBackward)                                                     \
    X(cudnnCreateCTCLossDescriptor)                                                      \
    X(cudnnSetCTCLossDescriptorEx)                                                       \
    X(cudnnSetCTCLossDescriptor_v8)                                                      \
    X(cudnnGetCTCLossWorkspaceSize)                                                      \
    X(cudnnCTCLoss)                                                                      \
    X(cudnnGetCTCLossWorkspaceSize_v8)                                                   \
    X(cudnnCTCLoss_v8)

#define CUDNN_OPTIONAL_FUNCTIONS(X)                                                      \
    X(cudnnGetLastErrorString)      /* 9 */                                              \
    X(cudnnSetCTCLossDescriptor_v9) /* 9 */

#endif
