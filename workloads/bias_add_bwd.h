/* What both backends of bias_add_bwd share. */
#ifndef WORKLOADS_BIAS_ADD_BWD_H
#define WORKLOADS_BIAS_ADD_BWD_H

#include <stdint.h>

/* `ordered`: so many groups of rows. */
enum { BIAS_SLOTS = 64 };

/* `patched`: lanes in blocks of rows, as reduce_sum has them. */
enum { BIAS_LANES = 16, BIAS_BLOCK_ROWS = 256 };

struct bias_add_shape {
    int64_t images, height, width, channels;
};

/* The state of a run, on every backend. */
struct bias_add_bwd {
    int64_t rows, channels;
    const float *dy;
    float *db;
    float *parts; /* one db for each slot, or for each lane of each block of rows */
};

#endif
