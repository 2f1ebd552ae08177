/* A training that can be interrupted: softmax regression with dropout, by SGD with
 * momentum, on a shuffled data set, with its loss scaled as for half precision.  All that
 * a step needs beside the data is in struct training, whose parts are those that the
 * PyTorch document lists; of its generators, which are alike, one stands for all.
 *
 * The scale is a power of two, by which nothing is rounded: so gradients are not scaled
 * in fact, and what half precision could not hold is told from their size.  In a step
 * with such a gradient weights and momentum stay, and the scale shrinks.  It begins so
 * large that this happens in the first step and in no other. */
#ifndef WORKLOADS_CHECKPOINT_TRAINING_H
#define WORKLOADS_CHECKPOINT_TRAINING_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "workloads/instruments/bits.h"
#include "workloads/instruments/hd.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TRAINING_FEATURES = 64,
    TRAINING_CLASSES = 32,
    TRAINING_WEIGHTS = TRAINING_FEATURES * TRAINING_CLASSES,
    TRAINING_BATCH = 512,
    TRAINING_GROUP = 4, /* examples whose gradients one task adds up */
    TRAINING_GROUPS = TRAINING_BATCH / TRAINING_GROUP,
    TRAINING_GROWTH_STEPS = 2000 /* without an overflow, until the scale is doubled */
};

#define TRAINING_FIRST_RATE 0x1p-9F
#define TRAINING_DECAY      0.5F
#define TRAINING_MOMENTUM   0.9F
#define TRAINING_SPREAD     0.25F /* of the initial weights */
#define TRAINING_SCALE      0x1p23F
#define TRAINING_BACKOFF    0x1p-4F
#define TRAINING_HALF_MAX   65504.0F /* the largest float16 */

/* The increment of SplitMix64. */
#define TRAINING_INCREMENT UINT64_C(0x9e3779b97f4a7c15)

struct training {
    float weights[TRAINING_WEIGHTS];
    float velocity[TRAINING_WEIGHTS];
    float rate;         /* the schedule: multiplied by DECAY after steps 1, 4, 7 … */
    int64_t step;       /* counts steps, for the schedule */
    int64_t position;   /* of the loader, in the shuffled examples */
    uint64_t generator; /* of dropout masks */
    float scale;        /* of the loss */
    int64_t growth;     /* steps without an overflow since the scale changed */
};

enum training_part {
    MODEL,
    OPTIMIZER,
    SCHEDULE,
    STEP,
    LOADER,
    SCALER,
    GENERATOR,
    NOTHING
};

/* What is trained on, and scratch memory, in the memory of the device that trains; all
 * borrowed. */
struct training_data {
    int64_t examples;
    const float *x; /* [examples][features] */
    const int32_t *labels, *order;
    const float *initial; /* [features][classes] in [-1, 1), in the host's memory */
    uint64_t seed;        /* of the generator */
    float *gradient;      /* [weights]; zero between steps */
    float *applied;       /* [weights]: the gradient of the last step */
    float *parts;         /* [groups][weights] */
    float *losses;        /* [batch], of the last step */
    int32_t *overflow;    /* whether the last step had one */
};

/* 0 or 2: element I of the batch is dropped or kept. */
REPROD_HD float training_keep(uint64_t generator, int64_t i)
{
    return (mix64(generator + TRAINING_INCREMENT * (uint64_t)(i + 1)) & 1) ? 2 : 0;
}

/* Whether half precision could not hold GRADIENT, of a loss that is multiplied by SCALE.
 */
REPROD_HD bool training_overflows(float gradient, float scale)
{
    return !(fabsf(gradient) * scale <= TRAINING_HALF_MAX);
}

void training_begin(const struct training_data *data, struct training *training);

void training_part_copy(struct training *to, const struct training *from,
                        enum training_part part);

/* Trains one step with a team of THREADS threads.  RACING: gradients are added in no
 * fixed order; otherwise the bits do not depend on THREADS. */
void training_step(const struct training_data *data, struct training *training,
                   int threads, bool racing);

/* The mean loss of the last step's batch. */
double training_loss(const struct training_data *data);

/* The end of a step, which changes the scalars alone; training_step includes it. */
void training_step_end(struct training *training, int64_t examples, bool overflow);

#ifdef __cplusplus
}
#endif

#endif
