/* The gradient of batch normalization of cuDNN in its spatial modes, float32, (image,
 * row, column, channel) in memory, from a mean and an inverse standard deviation that are
 * given.  What cuDNN refuses ends the run (outcome.h). */
#ifndef CUDA_CUDNN_BATCHNORM_H
#define CUDA_CUDNN_BATCHNORM_H

#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cudnnTensorStruct;

struct cudnn_norm {
    int images, height, width, channels;
    bool persistent; /* CUDNN_BATCHNORM_SPATIAL_PERSISTENT, not …_SPATIAL; where its
                        kernels cannot, cuDNN may take those of …_SPATIAL */
    double epsilon;  /* what went into inv_std */
    const float *x, *dy, *scale, *mean, *inv_std; /* device memory */
    float *dx, *dscale, *doffset;

    /* Written by cudnn_norm_describe. */
    struct cudnnTensorStruct *pixels, *channel_values;
};

/* Makes the descriptors, which needs no GPU. */
void cudnn_norm_describe(struct run *run, struct cudnn_norm *norm);

void cudnn_norm_compute(struct run *run, const struct cudnn_norm *norm);

#ifdef __cplusplus
}
#endif

#endif
