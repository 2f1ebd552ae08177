/* How far the values lie apart that runs gave one number: a sum, or a loss.  Pure. */
#ifndef DAEMON_TRACE_SPREAD_H
#define DAEMON_TRACE_SPREAD_H

#include <stdint.h>

struct spread_value {
    uint64_t bits; /* of a binary64 */
    int64_t runs;  /* that gave it, at least 1 */
};

struct spread {
    int64_t runs; /* that gave a finite value; the others are in no member but … */
    int64_t not_finite;       /* … this: those that gave a NaN or an infinity */
    int64_t distinct;         /* finite values with different bits */
    uint64_t least, greatest; /* bits of these; both 0 where RUNS is 0 */
    double range;             /* greatest - least, rounded; infinite: beyond binary64 */
    /* Of a sample: the root of the squares of the distances from the mean, each run's
     * once, over runs - 1.  NAN for fewer than two runs. */
    double standard_deviation;
    uint64_t ulp; /* binary64 values from least to greatest; zeros are 0 apart */
};

/* Of COUNT values, each of other bits than the rest; the order does not matter to
 * anything but the last digits of the deviation. */
void spread_of(const struct spread_value *values, int count, struct spread *ret_spread);

#endif
