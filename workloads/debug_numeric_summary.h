/* What both backends of debug_numeric_summary share. */
#ifndef WORKLOADS_DEBUG_NUMERIC_SUMMARY_H
#define WORKLOADS_DEBUG_NUMERIC_SUMMARY_H

#include "workloads/workload.h"

#include <math.h>

#include "workloads/instruments/philox.h"

enum {
    SUMMARY_BLOCK = 256,      /* elements that one thread of a GPU counts */
    SUMMARY_TASK_BLOCKS = 64, /* blocks in a task */
    SUMMARY_KINDS = 6         /* -inf, +inf, NaN, negative, zero, positive */
};

struct summary_shape {
    int64_t elements; /* of x; a multiple of SUMMARY_BLOCK * SUMMARY_TASK_BLOCKS */
    int64_t tiles;    /* how often the tensor repeats x */
};

/* Element INDEX of x, from the streams "kinds" and "x".  Of 1024 elements about 960 are
 * positive, 32 negative, 29 zero and one each infinite, infinite below zero, and NaN. */
static inline float summary_element(const struct run *run, uint64_t kinds,
                                    uint64_t values, uint64_t index)
{
    uint64_t draw = philox_index(run->seed, kinds, index, 1024);
    float value = fabsf(philox_wide_f32(run->seed, values, index));

    if (draw < 3) {
        return draw == 2 ? NAN : draw == 1 ? INFINITY : -INFINITY;
    }
    return draw < 32 ? 0 : draw < 64 ? -value : value;
}

#endif
