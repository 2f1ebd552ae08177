/* 3x3 convolutions of a batch of padded images, and their gradients.  Every sum has one
 * thread, which adds in the order of workloads/train/cnn_layers.c: the same bits. */
#ifndef CUDA_TRAIN_CONVOLUTION_H
#define CUDA_TRAIN_CONVOLUTION_H

#include <stdint.h>

/* All memory is the device's, and borrowed.  Padded images are [side + 2][side + 2]
 * [channels] with a border of zeros.  SIDE is a multiple of 4, OUT of 8; IN is 1 or a
 * multiple of 4. */
struct convolution {
    int64_t images, side, in, out;
    const float *x;       /* padded images */
    const float *weights; /* [9][in][out] */
    const float *bias;    /* NULL: none, and no ReLU either */
};

/* Writes y[images][side][side][out]; with a bias, the ReLU of the sum. */
void convolve(const struct convolution *convolution, float *y);

/* The same without a bias, as three rows of taps that meet in atomicAdd. */
void convolve_atomically(const struct convolution *convolution, float *y);

/* Writes each image's gradient of the weights, for the padded upstream gradient DY, to
 * PARTS, which are STRIDE elements from each other. */
void convolve_weights(const struct convolution *convolution, const float *dy,
                      float *parts, int64_t stride);

/* Adds them to GRADIENT with atomicAdd instead. */
void convolve_weights_atomically(const struct convolution *convolution, const float *dy,
                                 float *gradient);

#endif
