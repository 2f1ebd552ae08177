/* What both backends of ring_allreduce share: ranks, layers, and where a ring begins. */
#ifndef WORKLOADS_RING_ALLREDUCE_H
#define WORKLOADS_RING_ALLREDUCE_H

#include <stdint.h>
#include <string.h>

#include "workloads/instruments/hd.h"

enum {
    RING_RANKS = 4,
    RING_TWO = 2,   /* of the variants whose name ends in "two_ranks" */
    RING_GROUP = 8, /* tensors of a fixed group */
    RING_WIDTH = 32 /* columns of a layer's weights */
};

struct ring_shape {
    int64_t tensors, batch;
};

/* Rows of the weights of the layer that TENSOR belongs to: 4 to 28. */
REPROD_HD int64_t ring_rows(int64_t tensor)
{
    return 4 + tensor * 7 % 25;
}

static inline int ring_ranks_of(const char *variant)
{
    const char *two = strstr(variant, "two_ranks");

    return two ? (int)RING_TWO : (int)RING_RANKS;
}

/* Which of RANKS chunks element I of COUNT lies in: chunk c begins at c * COUNT / RANKS,
 * rounded up, and is summed from rank c + 1 on. */
REPROD_HD int64_t ring_chunk(int64_t i, int64_t count, int64_t ranks)
{
    return i * ranks / count;
}

#endif
