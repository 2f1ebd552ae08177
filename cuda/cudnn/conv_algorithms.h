/* What the workloads that run every algorithm of cuDNN's convolutions share, as far as it
 * is C: their shapes, what a variant's name says, and the float64 reference of all three
 * passes.  Tensors are in cuDNN's order: x[image, channel, row, column],
 * w[out channel, in channel, row, column], y as x; windows are 3x3, padded by 1. */
#ifndef CUDA_CUDNN_CONV_ALGORITHMS_H
#define CUDA_CUDNN_CONV_ALGORITHMS_H

#include "cuda/cudnn/convolution.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { LAYER_SIDE = 3, LAYER_TAPS = LAYER_SIDE * LAYER_SIDE };

struct layer_shape {
    int64_t images, in_channels, height, width, out_channels;
};

/* What RUN's variant may compute with: its dtype says it, or the ending "_tf32". */
enum cudnn_arithmetic conv_arithmetic(const struct run *run);

/* The hook `reference` of PASS, whose inputs are the first two of x, w, y that are not
 * its result; conv_bound.h has the bounds. */
void conv_reference(enum cudnn_pass pass, const struct run *run,
                    const struct tensor *inputs, const struct tensor *output,
                    double *ret_expected, double *ret_bound);

#ifdef __cplusplus
}
#endif

#endif
