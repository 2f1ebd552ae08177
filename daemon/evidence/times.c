#include "daemon/evidence/times.h"

#include <math.h>
#include <string.h>

#include "daemon/base/json_in.h"

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

double times_shift(const int64_t *subject, const int64_t *base)
{
    double n = 0;     /* runs of the subject */
    double m = 0;     /* of the base */
    double above = 0; /* pairs in which the subject takes longer; half of equal ones */
    double ties = 0;
    double variance;

    for (int b = 0; b < TIMES_BUCKETS; b++) {
        double s = (double)subject[b];
        double o = (double)base[b];
        double both = s + o;

        above += s * (m + o / 2);
        ties += both * both * both - both;
        n += s;
        m += o;
    }
    if (n < TIMES_SHIFT_RUNS || m < TIMES_SHIFT_RUNS) {
        return 0;
    }
    variance = n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1)));
    return variance > 0 ? (above - n * m / 2) / sqrt(variance) : 0;
}

int64_t times_least(const char *environment_json)
{
    json_t *facts = environment_json ? json_loads(environment_json, 0, NULL) : NULL;
    bool on_gpu = strcmp(in_text_or_empty(facts, "backend"), "cuda") == 0;

    json_decref(facts);
    return on_gpu ? TIMES_GPU_LEAST_NS : 0;
}

struct cost times_cost(const struct quartiles *subject, const struct quartiles *base,
                       int64_t least_ns)
{
    if (subject->runs < TIMES_COST_RUNS || base->runs < TIMES_COST_RUNS) {
        return (struct cost){ .known = false };
    }
    if (subject->median_ns < least_ns || base->median_ns < least_ns) {
        return (struct cost){ .too_short = true };
    }
    return (struct cost){
        .known = true,
        .median = (double)subject->median_ns / (double)base->median_ns,
        .low = (double)subject->lower_ns / (double)base->upper_ns,
        .high = (double)subject->upper_ns / (double)base->lower_ns,
    };
}
