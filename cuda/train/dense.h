/* The end of the network for a batch: dropout, dense layer and softmax cross-entropy, and
 * the way back.  Every sum has one thread, which adds in the order of
 * workloads/train/cnn_gradients.c: the same bits. */
#ifndef CUDA_TRAIN_DENSE_H
#define CUDA_TRAIN_DENSE_H

#include <stdint.h>

/* All memory is the device's, and borrowed. */
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
