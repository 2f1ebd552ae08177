/* What both backends of multinomial share: the state, and the score of a class. */
#ifndef WORKLOADS_MULTINOMIAL_H
#define WORKLOADS_MULTINOMIAL_H

#include <stdint.h>

#include "workloads/instruments/philox.h"
#include "workloads/shared/exp_log.h"

struct multinomial_shape {
    int64_t rows, samples, classes;
};

struct multinomial {
    struct multinomial_shape shape;
    uint64_t seed, stream; /* of the noise */
    const float *logits;   /* [rows][classes] */
    float *maxima;         /* [rows][samples]: scratch */
    int32_t *drawn;        /* [rows][samples] */
};

/* Of all rows; functions below count samples over them. */
REPROD_HD int64_t multinomial_samples(const struct multinomial *m)
{
    return m->shape.rows * m->shape.samples;
}

/* A number in [0, 1), of 23 bits, and a little more: its logarithm is finite. */
REPROD_HD float multinomial_uniform(const struct multinomial *m, int64_t sample,
                                    int64_t column)
{
    uint64_t i = (uint64_t)(sample * m->shape.classes + column);

    return (float)(philox_u32(m->seed, m->stream, i) >> 9) * 0x1p-23F + 2e-30F;
}

/* The logit of class COLUMN with Gumbel noise: the class that has the largest one is
 * drawn from the softmax of the logits. */
REPROD_HD float multinomial_score(const struct multinomial *m, int64_t sample,
                                  int64_t column)
{
    float noise = log_f32(-log_f32(multinomial_uniform(m, sample, column)));

    return m->logits[sample / m->shape.samples * m->shape.classes + column] - noise;
}

/* The largest score of a sample, and in *RET_LAST the last class that has it. */
REPROD_HD float multinomial_maximum(const struct multinomial *m, int64_t sample,
                                    int32_t *ret_last)
{
    float best = -INFINITY;

    *ret_last = 0;
    for (int64_t column = 0; column < m->shape.classes; column++) {
        float score = multinomial_score(m, sample, column);

        if (score >= best) {
            best = score;
            *ret_last = (int32_t)column;
        }
    }
    return best;
}

#endif
