/* What both backends of gather_bwd share. */
#ifndef WORKLOADS_GATHER_BWD_H
#define WORKLOADS_GATHER_BWD_H

#include <stdint.h>

#include "workloads/shared/scatter_rows.h"

struct gather_shape {
    int64_t rows, width;
    int64_t entries; /* rows of params; a multiple of the CPU's OWNED_ENTRIES */
};

/* Makes the inputs and outputs. */
static inline void gather_bwd_tensors(struct run *run, struct scatter *scatter)
{
    const struct gather_shape *shape = (const struct gather_shape *)run->size->params;
    int64_t dy_shape[] = { shape->rows, shape->width };
    int64_t params_shape[] = { shape->entries, shape->width };

    scatter->rows = shape->rows;
    scatter->width = shape->width;
    scatter->destinations = shape->entries;
    scatter->share = 1;
    scatter->picked = NULL;
    scatter->index = run_input_i32(run, "indices", 1, dy_shape, shape->entries);
    scatter->values = run_input_f32(run, "dy", 2, dy_shape, FILL_WIDE);
    scatter->sums = run_output_f32(run, "dparams", 2, params_shape);
}

#endif
