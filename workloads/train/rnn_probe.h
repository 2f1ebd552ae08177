/* What a step of train_rnn_ctc records. */
#ifndef WORKLOADS_TRAIN_RNN_PROBE_H
#define WORKLOADS_TRAIN_RNN_PROBE_H

#include "workloads/train/momentum.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where a step has left things, each for the whole batch, in the device's memory. */
struct rnn_records {
    int64_t batch;
    const int32_t *labels;             /* [LABELS] of each sequence */
    const float *x;                    /* [TIME][FEATURES] */
    const float *hidden;               /* [TIME + 1][HIDDEN] */
    const float *log_probs, *d_logits; /* [TIME][SYMBOLS] */
    const float *losses;               /* one of each sequence */
    struct momentum_records momentum;
};

/* Records all places of STEP, which has just ended.  After run_probing. */
void rnn_probe(struct run *run, int64_t step, const struct rnn_records *records);

#ifdef __cplusplus
}
#endif

#endif
