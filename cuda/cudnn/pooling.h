/* Max-pooling of cuDNN and its gradient, float32, (image, row, column, channel) in
 * memory: the order that both modes take.  What cuDNN refuses ends the run (outcome.h).
 */
#ifndef CUDA_CUDNN_POOLING_H
#define CUDA_CUDNN_POOLING_H

#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cudnnTensorStruct;
struct cudnnPoolingStruct;

struct cudnn_pool {
    int images, height, width, channels;
    int window, padding, stride; /* y is as large as x */
    bool deterministic;          /* CUDNN_POOLING_MAX_DETERMINISTIC, not …_MAX */
    const float *x, *dy;         /* device memory */
    float *y, *dx;               /* y is scratch */

    /* Written by cudnn_pool_describe. */
    struct cudnnTensorStruct *pixels; /* all four tensors */
    struct cudnnPoolingStruct *how;
};

/* Makes the descriptors, which needs no GPU. */
void cudnn_pool_describe(struct run *run, struct cudnn_pool *pool);

/* Pools x, because the gradient needs the maxima, and overwrites dx. */
void cudnn_pool_compute(struct run *run, const struct cudnn_pool *pool);

#ifdef __cplusplus
}
#endif

#endif
