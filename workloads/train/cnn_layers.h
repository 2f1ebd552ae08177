/* The layers of the network for one image, each in one fixed order, in float32.
 *
 * Convolved images are padded: [side + 2][side + 2][channels], with a border of zeros
 * that nobody writes.  Pooling has padding 1 too: window (r, c) covers rows 2r-1 .. 2r+1,
 * as far as they exist. */
#ifndef WORKLOADS_TRAIN_CNN_LAYERS_H
#define WORKLOADS_TRAIN_CNN_LAYERS_H

#include <stdint.h>

#include "workloads/train/cnn_image.h"

/* Convolution of a padded image of SIDE * SIDE pixels with taps [FIRST_TAP, END_TAP) of
 * WEIGHTS [9][in][out].  SIDE is a multiple of 4, OUT of 8. */
struct convolution {
    int64_t side, in, out;
    int first_tap, end_tap;
    const float *weights;
    const float *bias; /* NULL: none, and no ReLU either */
};

/* Writes y[side][side][out]; with a bias, the ReLU of the sum. */
void convolve(const struct convolution *convolution, const float *x, float *y);

/* Writes the gradient of all taps' weights for the padded upstream gradient DY. */
void convolve_weights(const struct convolution *convolution, const float *x,
                      const float *dy, float *dw);

/* Writes the maxima of the windows to the padded image Y, and to WINNERS which tap of
 * each window was the first to have it.  SIDE is that of X [side][side][channels]. */
void pool(int64_t side, int64_t channels, const float *x, float *y, uint8_t *winners);

#endif
