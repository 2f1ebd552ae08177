/* What both backends of scatter_nd share. */
#ifndef WORKLOADS_SCATTER_ND_H
#define WORKLOADS_SCATTER_ND_H

#include <stdint.h>

#include "workloads/shared/scatter_rows.h"

struct scatter_nd_shape {
    int64_t rows; /* a multiple of the CPU's SCATTER_TASK_ROWS */
    int64_t width, entries;
};

/* Makes the inputs and outputs of the sums. */
static inline void scatter_nd_tensors(struct run *run, struct scatter *scatter)
{
    const struct scatter_nd_shape *shape =
        (const struct scatter_nd_shape *)run->size->params;
    int64_t updates[] = { shape->rows, shape->width };
    int64_t params[] = { shape->entries, shape->width };

    scatter->rows = shape->rows;
    scatter->width = shape->width;
    scatter->destinations = shape->entries;
    scatter->share = 1;
    scatter->picked = NULL;
    scatter->index = run_input_i32(run, "indices", 1, updates, shape->entries);
    scatter->values = run_input_f32(run, "updates", 2, updates, FILL_WIDE);
    scatter->sums = run_output_f32(run, "added", 2, params);
}

#endif
