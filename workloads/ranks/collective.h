/* All-reduce: every rank contributes values, and ends with the same sums of all ranks.
 *
 * Called by all ranks alike.  The values lie in shared memory, those of rank r at PARTS +
 * r * STRIDE; a rank writes to its own and reads those of the rank before it (the root
 * those of all). */
#ifndef WORKLOADS_RANKS_COLLECTIVE_H
#define WORKLOADS_RANKS_COLLECTIVE_H

#include <stdint.h>

#include "workloads/ranks/ranks.h"

struct span {
    int64_t first, count;
};

/* Round the ring: each of SPANS is cut into as many chunks as there are ranks, and chunk
 * c is summed from rank c + 1 on.  So the place of a value in its span decides the order
 * in which it is added to others.  Spans go round side by side, each by itself. */
void ring_reduce(const struct rank *rank, float *parts, int64_t stride,
                 const struct span *spans, int64_t span_count);

/* Rank 0 sums COUNT values in the order of ranks; the sums then go round the ring. */
void root_reduce(const struct rank *rank, float *parts, int64_t stride, int64_t count);

#endif
