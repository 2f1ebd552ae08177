/* The layers of the network for a batch.  The orders of additions are those of
 * workloads/train/cnn_gradients.c: the same bits where nothing is added atomically.
 * All memory is the device's, and borrowed. */
#ifndef CUDA_TRAIN_LAYERS_H
#define CUDA_TRAIN_LAYERS_H

#include <stdbool.h>
#include <stdint.h>

/* A 3x3 convolution.  Padded images are [side + 2][side + 2]
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

/* Max-pooling 3x3, stride 2, padding 1, of a batch of images.  SIDE is even. */
struct pooling {
    int64_t images, side, channels;
    const float *x;   /* [images][side][side][channels], after the ReLU */
    float *y;         /* padded: [images][side / 2 + 2][side / 2 + 2][channels] */
    uint8_t *winners; /* [images][side / 2][side / 2][channels]: taps */
    const float *dy;  /* as winners */
    float *dx;        /* padded: [images][side + 2][side + 2][channels] */
};

/* Writes y inside its border, and winners: the first tap that has the maximum. */
void pool(const struct pooling *pooling);

/* Writes dx inside its border, 0 where the ReLU was shut.  A pixel collects from its
 * windows in order; ATOMICALLY: windows add to their pixels with atomicAdd. */
void unpool(const struct pooling *pooling, bool atomically);

/* The gradient of the bias before the ReLU, from dx: rows are summed, then the rows of
 * each image, in order, to PARTS, STRIDE elements from each other; ROWS is scratch memory
 * for [images][side][channels]. */
void bias_gradients(const struct pooling *pooling, float *rows, float *parts,
                    int64_t stride);

/* The same with rows that meet in atomicAdd. */
void bias_gradients_atomically(const struct pooling *pooling, float *gradient);

/* The end of the network: dropout, dense layer and softmax cross-entropy. */
struct dense {
    int64_t images, side, channels; /* of the pooled images */
    const float *pooled;            /* padded: [images][side + 2][side + 2][channels] */
    const int32_t *drops;           /* [images][features] */
    const int32_t *labels, *order;  /* [examples]; [images]: which example each is */
    const float *weights, *bias;    /* [features][classes], [classes] */
    float *features, *d_features;   /* [images][features]: after dropout; before it */
    float *d_logits;                /* [images][classes] */
    float *losses;                  /* [images] */
};

/* Writes features, losses and d_logits. */
void dense_forward(const struct dense *dense);

/* Writes d_features, and each image's gradients of weights and bias to PARTS, whose
 * elements for both follow each other, STRIDE from the next image's. */
void dense_backward(const struct dense *dense, float *parts, int64_t stride);

/* Adds the gradients of the bias to GRADIENT, with atomicAdd. */
void dense_bias_atomically(const struct dense *dense, float *gradient);

#endif
