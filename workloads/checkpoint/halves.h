/* A training in one piece, and one that is saved half-way and resumed by another process:
 * what is the same on every backend.  The file, and all that decides what is resumed, is
 * the host's business; the backend's is to train.  checkpoint_resume.c says what the
 * variants mean.
 *
 * The training is softmax regression with dropout, by SGD with momentum, on a shuffled
 * data set, with its loss scaled as for half precision.  All that a step needs except the
 * data is in struct training.  Its members are what the PyTorch document lists, with one
 * generator for all of the document's.
 *
 * The scale is a power of two, by which nothing is rounded.  So gradients are not scaled
 * in fact, and their size shows what half precision could not hold.  In a step
 * with such a gradient weights and momentum stay, and the scale shrinks.  It begins so
 * large that this happens in the first step and in no other. */
#ifndef WORKLOADS_CHECKPOINT_HALVES_H
#define WORKLOADS_CHECKPOINT_HALVES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "workloads/instruments/bits.h"
#include "workloads/instruments/hd.h"
#include "workloads/workload.h"

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

enum { HALVES_STEPS = 4, HALVES_VARIANTS = 9, HALVES_RELATIONS = 7 };

/* Its variants; the first is the control. */
extern const struct workload_variant halves_variants[HALVES_VARIANTS];

/* Which of them must have the digest of the training in one piece, and which must not. */
extern const struct workload_relation halves_relations[HALVES_RELATIONS];

struct checkpoint;

/* The state of a run. */
struct halves {
    struct training_data data;
    float *weights, *velocity; /* outputs */
    struct training *now;      /* in the host's memory */
    struct checkpoint *saved;
    struct training *before; /* in the device's memory: NOW before a step, for probes */
    /* Trains NOW for steps [FIRST, END); returns the mean loss of the last one's batch.
     */
    double (*train)(struct run *run, int first, int end);
    /* Writes BYTES of the host's memory to the device's. */
    void (*write)(void *device, const void *host, size_t bytes);
};

/* What halves_init leaves to the backend: inputs in the device's memory that the host
 * reads. */
struct halves_inputs {
    const float *initial; /* [TRAINING_WEIGHTS] */
    const int64_t *seed;  /* of the generator */
};

/* Makes inputs and outputs, and run->state.  The caller sets the functions, and the
 * members of `data` that are not inputs of the device: initial, seed, scratch memory. */
struct halves *halves_init(struct run *run, struct halves_inputs *ret_inputs);

/* Records all places of STEP, which has just ended, began with `before` and left WEIGHTS
 * and VELOCITY in the device's memory.  After run_probing. */
void halves_probe(struct run *run, int64_t step, const float *weights,
                  const float *velocity);

/* The hook `resume` of the workload. */
void halves_resume(struct run *run, int file);

/* What the variant leaves out of the file; NOTHING for most. */
enum training_part halves_omitted(const struct run *run);

#ifdef __cplusplus
}
#endif

#endif
