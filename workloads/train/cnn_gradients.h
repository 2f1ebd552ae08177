/* The gradients of one batch, and the state of a training that they are computed in. */
#ifndef WORKLOADS_TRAIN_CNN_GRADIENTS_H
#define WORKLOADS_TRAIN_CNN_GRADIENTS_H

#include "workloads/train/cnn_probe.h"

/* What is added in no fixed order: nothing, bias gradients, or also the gradients of
 * convolutions and of pooling. */
enum racing { RACING_NOTHING, RACING_BIAS, RACING_ALL };

/* One image of the batch: its parts of the buffers. */
struct image {
    float *x, *active1, *active2, *pooled1, *pooled2, *features;
    float *d_logits, *d_features, *d_pooled1, *d_sum1, *d_sum2;
    float *part; /* its share of the variables' gradients */
    uint8_t *winners1, *winners2;
    float *loss;
    int pending; /* tasks of the current stage of the unordered variant */
};

struct cnn {
    const struct cnn_shape *shape;
    struct cnn_layout layout;
    struct cnn_inputs inputs;
    float *variables, *velocity, *gradient;
    float *before, *velocity_before; /* variables and velocity before the update */
    float *applied;                  /* the gradient that it used */
    float *flipped; /* weights2 for the gradient of its input: [8 - tap][out][in] */
    float *parts;   /* [batch][variables] */
    float *buffers[CNN_BUFFERS];
    uint8_t *winners1, *winners2; /* [batch], as losses */
    float *losses;
    struct image *images;
    float *scratch; /* for each thread */
    int64_t scratch_floats;
};

/* The gradients of step STEP's batch: what races is added to cnn->gradient, the rest is
 * in the parts of the images.  For all threads of the team. */
void cnn_gradients(const struct cnn *cnn, int64_t step, enum racing racing);

#endif
