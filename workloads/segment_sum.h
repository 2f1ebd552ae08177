/* What both backends of segment_sum share: the input, which both make on the host. */
#ifndef WORKLOADS_SEGMENT_SUM_H
#define WORKLOADS_SEGMENT_SUM_H

#include "workloads/instruments/philox.h"
#include "workloads/workload.h"

enum {
    SEGMENT_CANCELLING = 4,   /* one in so many segments has cancelling rows */
    SEGMENT_PAIR_DISTANCE = 8 /* positions between the two rows of a pair */
};

struct segment_shape {
    int64_t rows, width, segments;
};

/* Row R of the data: as FILL_WIDE, or one of a cancelling pair.  Row R and row
 * R + SEGMENT_PAIR_DISTANCE are one when R divides into 2 * SEGMENT_PAIR_DISTANCE less
 * than SEGMENT_PAIR_DISTANCE times, and both are of the segment of R. */
static inline void segment_row_fill(const struct run *run,
                                    const struct segment_shape *shape, int64_t r,
                                    int32_t *ids, float *data)
{
    uint64_t id_stream = philox_stream(run->seed, run->workload->name, "ids");
    uint64_t stream = philox_stream(run->seed, run->workload->name, "data");
    bool second = r % (2 * SEGMENT_PAIR_DISTANCE) >= SEGMENT_PAIR_DISTANCE;
    uint64_t first = (uint64_t)(second ? r - SEGMENT_PAIR_DISTANCE : r);
    uint64_t segments = (uint64_t)shape->segments;
    uint64_t id = philox_index(run->seed, id_stream, first, segments);
    bool cancels = id % SEGMENT_CANCELLING == 0 && first % 4 == 0;

    if (!cancels) {
        first = (uint64_t)r;
    }
    ids[r] = (int32_t)philox_index(run->seed, id_stream, first, segments);
    for (int64_t c = 0; c < shape->width; c++) {
        uint64_t element = first * (uint64_t)shape->width + (uint64_t)c;
        float value = philox_wide_f32(run->seed, stream, element);

        data[r * shape->width + c] = !cancels ? value
                                     : second ? -0x1p36F * value
                                              : 0x1p36F * value;
    }
}

#endif
