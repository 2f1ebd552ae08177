/* What both backends of xla_scatter share. */
#ifndef WORKLOADS_XLA_SCATTER_H
#define WORKLOADS_XLA_SCATTER_H

#include <stdbool.h>
#include <stdint.h>

#include "workloads/instruments/hd.h"
#include "workloads/workload.h"

struct xla_scatter_shape {
    int64_t windows; /* a multiple of the CPU's TASK_WINDOWS */
    int64_t height, width;
    int64_t extent; /* rows of the sums, and columns; a multiple of its BAND */
};

/* Whether the window at INDEX lies within the sums. */
REPROD_HD bool xla_window_fits(const struct xla_scatter_shape *s, const int32_t *index)
{
    return index[0] + s->height <= s->extent && index[1] + s->width <= s->extent;
}

/* The state of a run; a GPU has other scratch memory. */
struct xla_scatter {
    struct xla_scatter_shape shape;
    const int32_t *indices; /* [windows][2] */
    const float *updates;   /* [windows][height][width] */
    float *sums;            /* [extent][extent] */
};

/* Makes the inputs and outputs. */
static inline void xla_scatter_tensors(struct run *run, struct xla_scatter *scatter)
{
    const struct xla_scatter_shape *s =
        (const struct xla_scatter_shape *)run->size->params;
    int64_t indices[] = { s->windows, 2 };
    int64_t updates[] = { s->windows, s->height, s->width };
    int64_t sums[] = { s->extent, s->extent };

    scatter->shape = *s;
    scatter->indices = run_input_i32(run, "indices", 2, indices, s->extent);
    scatter->updates = run_input_f32(run, "updates", 3, updates, FILL_WIDE);
    scatter->sums = run_output_f32(run, "sums", 2, sums);
}

#endif
