/* The training of train_rnn_ctc on the GPU: its state, and what a step does with the
 * sequences of a batch. */
#ifndef CUDA_TRAIN_SEQUENCES_H
#define CUDA_TRAIN_SEQUENCES_H

#include "workloads/train/rnn.h"

/* All memory is the device's, except host_losses. */
struct rnn {
    struct rnn_shape shape;
    const float *patterns, *noises, *initial;
    const int32_t *labels; /* [steps][batch][labels], less one */
    float *variables, *velocity, *gradient;
    float *before, *velocity_before; /* variables and velocity before the update */
    float *applied;                  /* the gradient that it used */
    float *parts;                    /* [batch][variables] */
    /* What probes read, of the whole batch; written where they do. */
    float *x, *hidden, *log_probs, *d_logits;
    float *losses;      /* [batch] */
    float *host_losses; /* the same, in the host's memory */
};

/* Takes each sequence of step STEP through network, CTC loss and back.  Writes losses
 * and, PROBING, what probes read; leaves the gradients of the sequences in parts or,
 * RACING, adds them to the gradient with atomicAdd. */
void sequences_compute(const struct rnn *rnn, int64_t step, bool racing, bool probing);

#endif
