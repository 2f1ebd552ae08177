/* The gradient of cuDNN's bilinear sampler, float32.  Images are (image, channel, row,
 * column), samples (image, channel, sample), the grid (image, sample, 2).  What cuDNN
 * refuses ends the run (outcome.h). */
#ifndef CUDA_CUDNN_SAMPLER_H
#define CUDA_CUDNN_SAMPLER_H

#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cudnnTensorStruct;
struct cudnnSpatialTransformerStruct;

struct cudnn_sampler {
    int images, height, width, channels;
    int samples;           /* of an image: one row of pixels to cuDNN */
    const float *x, *grid; /* device memory */
    float *dy, *dx, *dgrid;

    /* Written by cudnn_sampler_describe. */
    struct cudnnTensorStruct *x_as, *dy_as;
    struct cudnnSpatialTransformerStruct *how;
};

/* Makes the descriptors, which needs no GPU. */
void cudnn_sampler_describe(struct run *run, struct cudnn_sampler *sampler);

/* Overwrites dx and dgrid. */
void cudnn_sampler_compute(struct run *run, const struct cudnn_sampler *sampler);

#ifdef __cplusplus
}
#endif

#endif
