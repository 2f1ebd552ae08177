#include "daemon/evidence/times.h"

int times_bucket(int64_t ns)
{
    uint64_t n = ns < 1 ? 1 : (uint64_t)ns;
    int power = 63 - __builtin_clzll(n);

    if (power >= TIMES_BUCKETS / TIMES_PARTS) {
        return TIMES_BUCKETS - 1;
    }
    return power * TIMES_PARTS + (int)((n * TIMES_PARTS >> power) - TIMES_PARTS);
}

int64_t times_middle(int bucket)
{
    int64_t power = INT64_C(1) << bucket / TIMES_PARTS;
    int64_t halves = 2 * (TIMES_PARTS + bucket % TIMES_PARTS) + 1;

    /* Divided first where the product would not fit: a small part of such a power. */
    return power < INT64_C(1) << 32 ? power * halves / (2 * TIMES_PARTS)
                                    : power / (2 * TIMES_PARTS) * halves;
}

struct quartiles times_quartiles(const int64_t *counts)
{
    struct quartiles q = { .runs = 0 };
    int64_t *const targets[] = { &q.lower_ns, &q.median_ns, &q.upper_ns };
    int64_t seen = 0;
    int64_t quarter = 0;

    for (int b = 0; b < TIMES_BUCKETS; b++) {
        q.runs += counts[b];
    }
    for (int b = 0; b < TIMES_BUCKETS && quarter < 3; b++) {
        seen += counts[b];
        /* Rank ceil(quarter/4 * runs) is reached. */
        while (quarter < 3 && counts[b] > 0 && 4 * seen >= (quarter + 1) * q.runs) {
            *targets[quarter++] = times_middle(b);
        }
    }
    return q;
}

struct cost times_cost(const struct quartiles *subject, const struct quartiles *base)
{
    if (subject->runs < TIMES_COST_RUNS || base->runs < TIMES_COST_RUNS) {
        return (struct cost){ .known = false };
    }
    return (struct cost){
        .known = true,
        .median = (double)subject->median_ns / (double)base->median_ns,
        .low = (double)subject->lower_ns / (double)base->upper_ns,
        .high = (double)subject->upper_ns / (double)base->lower_ns,
    };
}
