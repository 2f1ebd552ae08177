/* What both backends of attention_bwd share. */
#ifndef WORKLOADS_ATTENTION_BWD_H
#define WORKLOADS_ATTENTION_BWD_H

#include <stdint.h>

struct attention_shape {
    int64_t heads;
    int64_t length; /* of queries and of keys; a multiple of 4 */
    int64_t depth;  /* a power of four, so that 1 / sqrt(depth) is exact */
};

#endif
