/* Max-pooling 3x3, stride 2, padding 1, of a batch of images, its gradient with that of
 * the ReLU before it, and bias gradients.  The orders are those of
 * workloads/train/cnn_gradients.c: the same bits where nothing is added atomically. */
#ifndef CUDA_TRAIN_POOLING_H
#define CUDA_TRAIN_POOLING_H

#include <stdbool.h>
#include <stdint.h>

/* All memory is the device's, and borrowed.  SIDE is even. */
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

#endif
