/* What all backends of train_rnn_ctc share: sizes, constants, and the functions of one
 * element.  workloads/train_rnn_ctc.c defines the operation. */
#ifndef WORKLOADS_TRAIN_RNN_H
#define WORKLOADS_TRAIN_RNN_H

#include <stdbool.h>
#include <stdint.h>

#include "workloads/instruments/hd.h"
#include "workloads/shared/exp_log.h"

struct rnn_shape {
    int64_t batch, steps;
};

enum {
    RNN_FEATURES = 8,
    RNN_HIDDEN = 24,
    RNN_SYMBOLS = 8,
    RNN_TIME = 20,
    RNN_LABELS = 5,
    RNN_FRAMES = RNN_TIME / RNN_LABELS, /* of a label */
    RNN_POSITIONS = 2 * RNN_LABELS + 1,
    /* Where the variables begin. */
    RNN_INPUT = 0,                                         /* [features][hidden] */
    RNN_RECURRENT = RNN_INPUT + RNN_FEATURES * RNN_HIDDEN, /* [hidden][hidden] */
    RNN_BIAS = RNN_RECURRENT + RNN_HIDDEN * RNN_HIDDEN,    /* [hidden] */
    RNN_OUTPUT = RNN_BIAS + RNN_HIDDEN,                    /* [hidden][symbols] */
    RNN_VARIABLES = RNN_OUTPUT + RNN_HIDDEN * RNN_SYMBOLS
};

#define RNN_RATE     0x1p-6F
#define RNN_MOMENTUM 0.75F
#define RNN_SPREAD   0.25F /* of the initial variables */
#define RNN_NOISE    0.5F

/* Element F of frame T of a sequence. */
REPROD_HD float rnn_frame(const float *patterns, const float *noise,
                          const int32_t *labels, int64_t t, int64_t f)
{
    return patterns[labels[t / RNN_FRAMES] * RNN_FEATURES + f] +
           RNN_NOISE * noise[t * RNN_FEATURES + f];
}

REPROD_HD float rnn_tanh(float z)
{
    return 1 - 2 / (exp_f32(2 * z) + 1);
}

/* log(exp(a) + exp(b)). */
REPROD_HD float rnn_log_add(float a, float b)
{
    float most = a > b ? a : b, least = a > b ? b : a;

    return most == -INFINITY ? most : most + log1p_f32(exp_f32(least - most));
}

/* The paths that come to position AT of ROW: from there, from the NEXT one STEP away, and
 * by a SKIP from the one behind that. */
REPROD_HD float rnn_log_add_three(const float *row, int64_t at, int64_t step, bool next,
                                  bool skip)
{
    float sum = row[at];

    if (next) {
        sum = rnn_log_add(sum, row[at + step]);
    }
    return skip ? rnn_log_add(sum, row[at + 2 * step]) : sum;
}

#endif
