/* What both backends of sparse_segment_sum share: lanes, and ids made on the host. */
#ifndef WORKLOADS_SPARSE_SEGMENT_SUM_H
#define WORKLOADS_SPARSE_SEGMENT_SUM_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/instruments/hd.h"
#include "workloads/instruments/philox.h"
#include "workloads/workload.h"

/* Row i of a segment goes to lane i mod SPARSE_LANES; see the variant `ordered`. */
enum { SPARSE_LANES = 8, SPARSE_WIDTH_MAX = 64 };

struct sparse_segment_shape {
    int64_t rows, width; /* of the data; width is at most SPARSE_WIDTH_MAX */
    int64_t indices, segments;
};

/* Where the segments from SEGMENT on begin. */
REPROD_HD int64_t sparse_segment_begin(const int32_t *segment_ids, int64_t count,
                                       int64_t segment)
{
    int64_t begin = 0, end = count;

    while (begin < end) {
        int64_t middle = begin + (end - begin) / 2;

        if (segment_ids[middle] < segment) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return begin;
}

/* Each index draws its segment; sorted, since only how many a segment has matters. */
static inline void sparse_segment_ids_fill(const struct run *run,
                                           const struct sparse_segment_shape *shape,
                                           int32_t *ids)
{
    uint64_t stream = philox_stream(run->seed, run->workload->name, "segment_ids");
    int64_t *counts = (int64_t *)run_host_alloc((size_t)shape->segments * sizeof *counts);

    memset(counts, 0, (size_t)shape->segments * sizeof *counts);
    for (int64_t i = 0; i < shape->indices; i++) {
        counts[philox_index(run->seed, stream, (uint64_t)i, (uint64_t)shape->segments)]++;
    }
    for (int64_t segment = 0; segment < shape->segments; segment++) {
        while (counts[segment]-- > 0) {
            *ids++ = (int32_t)segment;
        }
    }
    free(counts);
}

#endif
