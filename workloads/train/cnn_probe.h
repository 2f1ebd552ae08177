/* What a step of the training records, and how the buffers lie from which it does: the
 * same on every backend, so that traces of two backends can be compared. */
#ifndef WORKLOADS_TRAIN_CNN_PROBE_H
#define WORKLOADS_TRAIN_CNN_PROBE_H

#include "workloads/train/cnn.h"
#include "workloads/train/momentum.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* Floats of an image in each buffer. */
void cnn_buffer_sizes(const struct cnn_shape *shape, int64_t ret_floats[CNN_BUFFERS]);

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

    for (int i = 0; i <= CNN_SECTIONS; i++) {
        ret_bounds[i] = bounds[i];
    }
}

/* Where a step has left things, in the device's memory. */
struct cnn_records {
    const struct cnn_shape *shape;
    const struct cnn_inputs *inputs;
    float *const *buffers;              /* [CNN_BUFFERS] */
    const uint8_t *winners1, *winners2; /* taps, one of each pooled element */
    const float *losses;                /* one of each image */
    struct momentum_records momentum;
};

/* Records all places of STEP, which has just ended.  After run_probing. */
void cnn_probe(struct run *run, int64_t step, const struct cnn_records *records);

#ifdef __cplusplus
}
#endif

#endif
