/* What both backends of xla_scatter share. */
#ifndef WORKLOADS_XLA_SCATTER_H
#define WORKLOADS_XLA_SCATTER_H

#include <stdbool.h>
#include <stdint.h>

#include "workloads/instruments/hd.h"

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

#endif
