/* What both backends of reduce_sum share. */
#ifndef WORKLOADS_REDUCE_SUM_H
#define WORKLOADS_REDUCE_SUM_H

#include <stdint.h>

/* A row is summed in blocks of columns, a block in lanes; see the variant `ordered`. */
enum { REDUCE_LANES = 16, REDUCE_BLOCK = 256 };

/* The product with ones takes so many columns at a time; see the variant `matmul`. */
enum { REDUCE_MATMUL_DEPTH = 64 };

struct reduce_sum_shape {
    int64_t rows, columns;
    int64_t panel; /* columns in a task of the CPU's unordered variant */
};

#endif
