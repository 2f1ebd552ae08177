/* Descriptors of cuDNN, made in one call each, and its handle.  None but cudnn_handle
 * needs a GPU.  What cuDNN refuses ends the run (loader.h).  All live until the process
 * ends.
 *
 * Extents are (images, channels, rows, columns), whatever the order in memory. */
#ifndef CUDA_CUDNN_DESCRIBE_H
#define CUDA_CUDNN_DESCRIBE_H

#include "cuda/cudnn/loader.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One handle serves the process, on the default stream. */
cudnnHandle_t cudnn_handle(struct run *run);

/* cuDNN's name of DTYPE; ends the run as `unsupported` where there is none. */
cudnnDataType_t cudnn_dtype(struct run *run, enum dtype dtype);

cudnnTensorDescriptor_t cudnn_tensor(struct run *run, cudnnTensorFormat_t order,
                                     enum dtype dtype, int images, int channels, int rows,
                                     int columns);
/* Row-major, RANK extents of 3 or more. */
cudnnTensorDescriptor_t cudnn_tensor_nd(struct run *run, enum dtype dtype, int rank,
                                        const int *extents);
cudnnFilterDescriptor_t cudnn_filter(struct run *run, cudnnTensorFormat_t order,
                                     enum dtype dtype, int out_channels, int in_channels,
                                     int rows, int columns);

struct cudnn_convolution_shape {
    int padding, stride, dilation; /* the same for rows and columns */
    int groups;                    /* 1: an ordinary convolution */
    cudnnMathType_t math;
};

/* A cross-correlation that accumulates in float32 (float64 for float64). */
cudnnConvolutionDescriptor_t
cudnn_convolution(struct run *run, enum dtype dtype,
                  const struct cudnn_convolution_shape *shape);

cudnnPoolingDescriptor_t cudnn_pooling(struct run *run, cudnnPoolingMode_t mode,
                                       int window, int padding, int stride);

/* A CTC loss whose inputs are logits: cuDNN takes the softmax, and gradients are with
 * respect to the logits; a label that does not fit its sequence has gradient 0.
 * MOST_LABELS is the longest label, at most 255.  cuDNN 8 and 9 have different setters.
 */
cudnnCTCLossDescriptor_t cudnn_ctc(struct run *run, int most_labels);

/* Device memory for a workspace of BYTES; NULL for 0, as cuDNN takes it. */
void *cudnn_workspace(struct run *run, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
