/* A small convolutional network and its training, for train_cnn and train_cnn_large.
 *
 *   images [side,side,1] - convolution 3x3, bias, ReLU, max-pooling 3x3 stride 2
 *                        - convolution 3x3, bias, ReLU, max-pooling 3x3 stride 2
 *                        - dropout - dense - softmax cross-entropy, mean over the batch
 *
 * trained by SGD with momentum on shuffled examples.  An image is the pattern of its
 * class plus noise, so there is something to learn.  One iteration of a run is one whole
 * training from the same initial weights.
 *
 * Correctness.  A training has kinks (ReLU, the maximum of a window) and feeds every
 * rounding error back, so no bound that follows from the shapes alone would be of use.
 * The bound is measured instead (monte_carlo.h); it is some thousand times smaller than
 * what the weights move during training. */
#ifndef WORKLOADS_TRAIN_CNN_H
#define WORKLOADS_TRAIN_CNN_H

#include <math.h>

#include "workloads/instruments/hd.h"
#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cnn_shape {
    int64_t side;                 /* of an image; a multiple of 8 */
    int64_t channels1, channels2; /* of the convolutions; multiples of 8 */
    int64_t batch, steps;
    int64_t examples; /* in the data set; a multiple of batch */
};

enum { CNN_CLASSES = 10, CNN_TAPS = 9 };

#define CNN_LEARNING_RATE 0.05F
#define CNN_MOMENTUM      0.9F
#define CNN_NOISE         0.5F /* largest noise in a pixel; patterns are in [-1, 1) */

/* An element of the features is dropped where its input `drop`, in [0, CNN_DROP), is 0;
 * the others are scaled up. */
enum { CNN_DROP = 4 };
#define CNN_KEEP_SCALE (4.0F / 3.0F)

/* Inputs, in order of creation. */
enum cnn_input {
    CNN_PATTERNS,
    CNN_NOISES,
    CNN_LABELS,
    CNN_ORDER,
    CNN_DROPS,
    CNN_INITIAL
};

/* The same, in the memory of the run's device. */
struct cnn_inputs {
    const float *patterns; /* [classes][side * side] */
    const float *noises;   /* [examples][side * side] */
    const int32_t *labels; /* [examples] */
    const int32_t *order;  /* [steps][batch]: the examples, shuffled in each epoch */
    const int32_t *drops;  /* [steps][batch][features] */
    const float *initial;  /* [variables] in [-1, 1), scaled by cnn_initial */
};

/* Where the variables begin in the flat vector of all of them. */
struct cnn_layout {
    int64_t weights1, bias1; /* [9][1][channels1], [channels1] */
    int64_t weights2, bias2; /* [9][channels1][channels2], [channels2] */
    int64_t weights3, bias3; /* [features][classes], [classes] */
    int64_t count;
    int64_t features; /* of an image after the second pooling */
};

struct cnn_layout cnn_layout_of(const struct cnn_shape *shape);

/* The initial value of variable I: uniform within sqrt(6 / fan-in) (He et al., "Delving
 * deep into rectifiers", ICCV 2015), 0 for a bias.  VALUE is its input. */
REPROD_HD float cnn_initial(const struct cnn_shape *shape,
                            const struct cnn_layout *layout, int64_t i, float value)
{
    int64_t fan_in = layout->features;

    if (i < layout->weights2) {
        fan_in = i < layout->bias1 ? CNN_TAPS : 0;
    } else if (i < layout->weights3) {
        fan_in = i < layout->bias2 ? CNN_TAPS * shape->channels1 : 0;
    } else if (i >= layout->bias3) {
        fan_in = 0;
    }
    return fan_in ? value * sqrtf(6.0F / (float)fan_in) : 0;
}

/* Makes the inputs; on every backend the same. */
void cnn_inputs_make(struct run *run, const struct cnn_shape *shape,
                     struct cnn_inputs *ret_inputs);

enum { CNN_VARIANTS = 3 };
extern const struct workload_variant cnn_variants[CNN_VARIANTS];
enum { CNN_REFERENCES = 10 };
extern const struct workload_reference cnn_references[CNN_REFERENCES];

/* The hooks of a workload whose sizes point to a struct cnn_shape. */
void cnn_setup(struct run *run);
void cnn_reference(const struct run *run, const struct tensor *inputs,
                   const struct tensor *output, double *ret_expected, double *ret_bound);

/* What all workloads of the CPU say that train this network. */
#define CNN_TRAINING                                                                     \
    .summary = "convolutions, pooling, dropout, cross-entropy, SGD with momentum",       \
    .variants = cnn_variants, .variant_count = CNN_VARIANTS,                             \
    .weight_sum = "sum of all variables after the last step",                            \
    .loss = "mean loss of the last step's batch", .references = cnn_references,          \
    .reference_count = CNN_REFERENCES, .setup = cnn_setup, .reference = cnn_reference

#ifdef __cplusplus
}
#endif

#endif
