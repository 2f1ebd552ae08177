/* What both backends of gather_bwd share. */
#ifndef WORKLOADS_GATHER_BWD_H
#define WORKLOADS_GATHER_BWD_H

#include <stdint.h>

struct gather_shape {
    int64_t rows, width;
    int64_t entries; /* rows of params; a multiple of the CPU's OWNED_ENTRIES */
};

#endif
