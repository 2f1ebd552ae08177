/* What train_rnn_ctc is compared with, on every backend. */
#ifndef WORKLOADS_TRAIN_RNN_REFERENCE_H
#define WORKLOADS_TRAIN_RNN_REFERENCE_H

#include "workloads/workload.h"

/* Inputs, in order of creation. */
enum rnn_input { RNN_PATTERNS, RNN_NOISES, RNN_SPOKEN, RNN_INITIAL };

/* The reference hook: computes in probabilities, scaled at each time.  Sizes point to a
 * struct rnn_shape. */
void rnn_reference(const struct run *run, const struct tensor *inputs,
                   const struct tensor *output, double *ret_expected, double *ret_bound);

#endif
