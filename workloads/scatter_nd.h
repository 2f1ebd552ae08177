/* What both backends of scatter_nd share. */
#ifndef WORKLOADS_SCATTER_ND_H
#define WORKLOADS_SCATTER_ND_H

#include <stdint.h>

struct scatter_nd_shape {
    int64_t rows; /* a multiple of the CPU's SCATTER_TASK_ROWS */
    int64_t width, entries;
};

#endif
