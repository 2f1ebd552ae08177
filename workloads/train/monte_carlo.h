/* How far rounding may take a training: Monte Carlo arithmetic (Parker, "Monte Carlo
 * arithmetic", UCLA CSD 970002, 1997).
 *
 * A float64 training is made once as it is, sample 0, and MONTE_CARLO_SAMPLES times with
 * each sum moved at random by several times what the workload's dtype may round.  A
 * variable may be off by MONTE_CARLO_DISTANCES times the largest distance from sample 0
 * that was seen.  An estimate, not a proof. */
#ifndef WORKLOADS_TRAIN_MONTE_CARLO_H
#define WORKLOADS_TRAIN_MONTE_CARLO_H

#include <stdint.h>

#include "workloads/instruments/bits.h"
#include "workloads/shared/rounding.h"

enum {
    MONTE_CARLO_SAMPLES = 4,
    MONTE_CARLO_UNITS = 8, /* of roundoff that a sum is moved by, in parts of its terms */
    MONTE_CARLO_DISTANCES = 8
};

struct monte_carlo {
    double unit;      /* 0: nothing is moved */
    uint64_t counter; /* of the moves */
};

static inline struct monte_carlo monte_carlo_sample(int sample, enum dtype dtype)
{
    struct monte_carlo m = { sample > 0 ? MONTE_CARLO_UNITS * rounding_unit(dtype) : 0,
                             (uint64_t)sample << 48 };

    return m;
}

/* VALUE, a sum of terms whose magnitudes add up to MAGNITUDE, moved at random. */
static inline double monte_carlo_move(struct monte_carlo *m, double value,
                                      double magnitude)
{
    double random;

    if (m->unit == 0) {
        return value;
    }
    random = (double)(int64_t)mix64(m->counter++) * 0x1p-63;
    return value + random * m->unit * magnitude;
}

#endif
