/* Gradients that cuDNN has a function for, in float32: of batch normalization,
 * max-pooling and the bilinear sampler.  The _describe functions make the descriptors,
 * which needs no GPU; the _compute functions overwrite the results.  What cuDNN refuses
 * ends the run (loader.h). */
#ifndef CUDA_CUDNN_GRADIENTS_H
#define CUDA_CUDNN_GRADIENTS_H

#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cudnnTensorStruct;
struct cudnnPoolingStruct;
struct cudnnSpatialTransformerStruct;

/* The gradient of batch normalization in its spatial modes, (image, row, column, channel)
 * in memory, from a mean and an inverse standard deviation that are given. */
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

void cudnn_norm_describe(struct run *run, struct cudnn_norm *norm);

void cudnn_norm_compute(struct run *run, const struct cudnn_norm *norm);

/* Max-pooling and its gradient, (image, row, column, channel) in memory: the order that
 * both modes take. */
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

void cudnn_pool_describe(struct run *run, struct cudnn_pool *pool);

/* Pools x, because the gradient needs the maxima, and overwrites dx. */
void cudnn_pool_compute(struct run *run, const struct cudnn_pool *pool);

/* The gradient of the bilinear sampler.  Images are (image, channel, row, column),
 * samples (image, channel, sample), the grid (image, sample, 2). */
struct cudnn_sampler {
    int images, height, width, channels;
    int samples;           /* of an image: one row of pixels to cuDNN */
    const float *x, *grid; /* device memory */
    float *dy, *dx, *dgrid;

    /* Written by cudnn_sampler_describe. */
    struct cudnnTensorStruct *x_as, *dy_as;
    struct cudnnSpatialTransformerStruct *how;
};

void cudnn_sampler_describe(struct run *run, struct cudnn_sampler *sampler);

/* Overwrites dx and dgrid. */
void cudnn_sampler_compute(struct run *run, const struct cudnn_sampler *sampler);

#ifdef __cplusplus
}
#endif

#endif
