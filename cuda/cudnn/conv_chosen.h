/* How far rounding may lead a convolution whose algorithm cuDNN chose, in the workloads
 * that have a twin on the CPU.  Their own references bound sums of products, in any
 * order; an FFT and Winograd's transforms err otherwise, by what conv_bound.h says.
 *
 * Tensors are in those workloads' order: x[image, row, column, channel], w[row, column,
 * in channel, out channel], y as x.  Windows are 3x3, their stride is 1; data are float32
 * and computed with as such. */
#ifndef CUDA_CUDNN_CONV_CHOSEN_H
#define CUDA_CUDNN_CONV_CHOSEN_H

#include "cuda/cudnn/convolution.h"

#ifdef __cplusplus
extern "C" {
#endif

struct conv_chosen {
    enum cudnn_pass pass;
    int64_t images, height, width, in_channels, out_channels;
    int64_t branches; /* equal shares of the out channels, each with an algorithm of its
                         own; 1 for the gradient of x */
    const float *x, *w, *y; /* in the host's memory; the pass's result is not read */
};

/* For a `reference` hook, behind the workload's own: replaces the BOUNDS of what an FFT
 * or Winograd's transforms computed, and leaves all others.  run->algorithm says which:
 * it begins with a name for each branch, with spaces between them. */
void conv_chosen_bounds(const struct conv_chosen *conv, const struct run *run,
                        double *bounds);

#ifdef __cplusplus
}
#endif

#endif
