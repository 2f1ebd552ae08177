/* The state of a training, between cnn.c, which sets it up, and cnn_train.c. */
#ifndef WORKLOADS_TRAIN_CNN_STATE_H
#define WORKLOADS_TRAIN_CNN_STATE_H

#include "workloads/train/cnn.h"

/* What is added in no fixed order: nothing, bias gradients, or also the gradients of
 * convolutions and of pooling. */
enum racing { RACING_NOTHING, RACING_BIAS, RACING_ALL };

/* The activations of a batch, and gradients with respect to them; one array each, of one
 * image after the other. */
enum cnn_buffer {
    CNN_X,       /* padded, as are pooled1, pooled2, d_sum1 and d_sum2 */
    CNN_ACTIVE1, /* after the ReLU, as is active2 */
    CNN_POOLED1,
    CNN_ACTIVE2,
    CNN_POOLED2,
    CNN_FEATURES, /* after dropout */
    CNN_D_LOGITS,
    CNN_D_FEATURES, /* before dropout */
    CNN_D_SUM2,     /* of the convolution's results, as is d_sum1 */
    CNN_D_POOLED1,
    CNN_D_SUM1,
    CNN_BUFFERS
};

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
    float *before, *applied; /* the variables before the update, and their gradient */
    float *flipped; /* weights2 for the gradient of its input: [8 - tap][out][in] */
    float *parts;   /* [batch][variables] */
    float *buffers[CNN_BUFFERS];
    int64_t strides[CNN_BUFFERS]; /* floats of an image */
    uint8_t *winners1, *winners2;
    int64_t winners1_stride, winners2_stride;
    float *losses;
    struct image *images;
    float *scratch; /* for each thread */
    int64_t scratch_floats;
};

/* Weights and biases of the layers, in the order of struct cnn_layout. */
enum { CNN_SECTIONS = 6 };

/* Section I is variables [bounds[I], bounds[I + 1]). */
static inline void cnn_sections(const struct cnn_layout *layout,
                                int64_t ret_bounds[CNN_SECTIONS + 1])
{
    const int64_t bounds[CNN_SECTIONS + 1] = { layout->weights1, layout->bias1,
                                               layout->weights2, layout->bias2,
                                               layout->weights3, layout->bias3,
                                               layout->count };

    for (int i = 0; i <= CNN_SECTIONS; i++)
        ret_bounds[i] = bounds[i];
}

/* Records all places of a step that has just ended.  After run_probing. */
void cnn_probe(struct run *run, int64_t step);

/* Trains from the initial variables, and sets the run's loss. */
void cnn_train(struct run *run, enum racing racing);

#endif
