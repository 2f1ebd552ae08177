/* What both backends of sparse_dense_matmul share. */
#ifndef WORKLOADS_SPARSE_DENSE_MATMUL_H
#define WORKLOADS_SPARSE_DENSE_MATMUL_H

#include <stdint.h>

struct sparse_matmul_shape {
    int64_t rows, inner, columns;
    int64_t nonzeros; /* a multiple of the CPU's TASK */
};

#endif
