/* What both backends of cumsum share. */
#ifndef WORKLOADS_CUMSUM_H
#define WORKLOADS_CUMSUM_H

#include <stdint.h>

/* Elements of a block, and blocks that a task of the racing variant takes. */
enum { CUMSUM_BLOCK = 256, CUMSUM_TASK_BLOCKS = 32 };

struct cumsum_shape {
    int64_t elements; /* a multiple of CUMSUM_BLOCK * CUMSUM_TASK_BLOCKS */
};

/* The state of a run, on every backend. */
struct cumsum {
    int64_t blocks;
    const float *x;
    float *sums;
    float *aggregates; /* [blocks]: sum of a block */
    float *prefixes;   /* [blocks]: running sum at the end of a block; `ordered`: the
                          aggregates one after another, a serial chain on every backend */
    int32_t *known;    /* [blocks]: whether its prefix is published */
};

#endif
