/* What both backends of embedding_bwd share: the ids, which both make on the host. */
#ifndef WORKLOADS_EMBEDDING_BWD_H
#define WORKLOADS_EMBEDDING_BWD_H

#include <stdlib.h>

#include "workloads/instruments/philox.h"
#include "workloads/shared/scatter_rows.h"

enum {
    EMBEDDING_PADDING = -1,
    EMBEDDING_PADDED = 4 /* ids of padding at the end of a bag: fewer than this */
};

struct embedding_shape {
    int64_t bags, length; /* ids in a bag, padding included */
    int64_t entries;      /* a power of two */
    int64_t width;
};

/* Each power of two of entries is equally likely, and so is each entry within it. */
static inline int32_t embedding_word_draw(const struct run *run, uint64_t stream,
                                          uint64_t index, int64_t entries)
{
    uint64_t octaves = 0;

    while ((int64_t)1 << octaves < entries) {
        octaves++;
    }
    octaves = philox_index(run->seed, stream, 2 * index, octaves);
    return (
        int32_t)(((uint64_t)1 << octaves) - 1 +
                 philox_index(run->seed, stream, 2 * index + 1, (uint64_t)1 << octaves));
}

static inline void embedding_ids_fill(const struct run *run,
                                      const struct embedding_shape *shape, int32_t *ids)
{
    uint64_t words = philox_stream(run->seed, run->workload->name, "ids");
    uint64_t padded = philox_stream(run->seed, run->workload->name, "padding");

    for (int64_t b = 0; b < shape->bags; b++) {
        int64_t length =
            shape->length -
            (int64_t)philox_index(run->seed, padded, (uint64_t)b, EMBEDDING_PADDED);

        for (int64_t i = b * shape->length; i < (b + 1) * shape->length; i++) {
            ids[i] = i % shape->length < length
                         ? embedding_word_draw(run, words, (uint64_t)i, shape->entries)
                         : EMBEDDING_PADDING;
        }
    }
}

/* Makes the inputs and outputs. */
static inline void embedding_bwd_tensors(struct run *run, struct scatter *scatter)
{
    const struct embedding_shape *shape =
        (const struct embedding_shape *)run->size->params;
    int64_t ids_shape[] = { shape->bags, shape->length };
    int64_t dy_shape[] = { shape->bags, shape->width };
    int64_t table_shape[] = { shape->entries, shape->width };
    int32_t *ids =
        (int32_t *)run_host_alloc((size_t)(shape->bags * shape->length) * sizeof *ids);

    embedding_ids_fill(run, shape, ids);
    scatter->rows = shape->bags * shape->length;
    scatter->width = shape->width;
    scatter->destinations = shape->entries;
    scatter->share = shape->length;
    scatter->picked = NULL;
    scatter->index = run_values_i32(run, "ids", 2, ids_shape, ids);
    scatter->values = run_input_f32(run, "dy", 2, dy_shape, FILL_WIDE);
    scatter->sums = run_output_f32(run, "dtable", 2, table_shape);
    free(ids);
}

#endif
