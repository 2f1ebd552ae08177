/* A training in one piece, and one that is saved half-way and resumed by another process:
 * what is the same on every backend.  The file, and all that decides what is resumed, is
 * the host's business; the backend's is to train.  checkpoint_resume.c says what the
 * variants mean. */
#ifndef WORKLOADS_CHECKPOINT_HALVES_H
#define WORKLOADS_CHECKPOINT_HALVES_H

#include "workloads/checkpoint/training.h"
#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

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
