/* What both backends of uninitialized_read share. */
#ifndef WORKLOADS_UNINITIALIZED_READ_H
#define WORKLOADS_UNINITIALIZED_READ_H

#include <stdint.h>

/* Bins cleared at a time; no divisor of the bins of any size. */
enum { UNINITIALIZED_BLOCK = 96 };

struct histogram_shape {
    int64_t values, bins;
};

/* The state of a run, on every backend. */
struct uninitialized_read {
    int64_t values, bins;
    const int32_t *bin;
    int32_t *counts;
};

#endif
