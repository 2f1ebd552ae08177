/* The state of a training, between cnn.cu, which sets it up, and cnn_train.cu. */
#ifndef CUDA_TRAIN_CNN_STATE_H
#define CUDA_TRAIN_CNN_STATE_H

#include "cuda/train/cnn.h"
#include "cuda/train/convolution.h"
#include "cuda/train/dense.h"
#include "cuda/train/pooling.h"
#include "workloads/train/cnn_probe.h"

/* What is added in no fixed order: nothing, bias gradients, or also the gradients of
 * convolutions and of pooling. */
enum racing { RACING_NOTHING, RACING_BIAS, RACING_ALL };

/* Layers share memory: one writes what the next one reads. */
struct cnn {
    struct cnn_shape shape;
    struct cnn_layout layout;
    struct cnn_inputs inputs;
    float *buffers[CNN_BUFFERS];
    struct convolution conv1, conv2, back; /* back: the gradient of conv2's input */
    struct pooling pool1, pool2;
    struct dense dense;
    float *variables, *velocity, *gradient;
    float *before, *velocity_before; /* variables and velocity before the update */
    float *applied;                  /* the gradient that it used */
    float *flipped;                  /* weights2 for `back`: [8 - tap][out][in] */
    float *parts;                    /* [batch][variables] */
    float *rows;                     /* of bias gradients */
    float *losses;                   /* [batch], in the host's memory */
};

/* Trains from the initial variables, and sets the run's loss. */
void cnn_train(struct run *run, enum racing racing);

#endif
