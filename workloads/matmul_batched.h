/* What both backends of matmul_batched share. */
#ifndef WORKLOADS_MATMUL_BATCHED_H
#define WORKLOADS_MATMUL_BATCHED_H

#include <stdint.h>

/* The inner dimension is split into so many parts. */
enum { MATMUL_SPLIT = 16 };

struct matmul_shape {
    int64_t batch, rows, inner,
        columns; /* inner: a multiple of MATMUL_SPLIT, rows of 4 */
};

#endif
