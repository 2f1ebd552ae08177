/* What both backends of bincount share. */
#ifndef WORKLOADS_BINCOUNT_H
#define WORKLOADS_BINCOUNT_H

#include <stdint.h>

/* `ordered`: so many parts of the values, with bins of their own. */
enum { BINCOUNT_SLOTS = 32 };

struct bincount_shape {
    int64_t values; /* a multiple of the CPU's TASK */
    int64_t bins;
};

#endif
