/* What both backends of maxpool_bwd share: shapes, and which pixel a window's tap is. */
#ifndef WORKLOADS_MAXPOOL_BWD_H
#define WORKLOADS_MAXPOOL_BWD_H

#include <stdint.h>

#include "workloads/instruments/hd.h"
#include "workloads/workload.h"

enum {
    POOL_TAPS = 3,
    POOL_WINDOW = POOL_TAPS * POOL_TAPS,
    POOL_CENTRE = POOL_WINDOW / 2
};

struct pool_shape {
    int64_t images, height, width, channels;
};

/* Pixel of the image under tap TAP of the window at (ROW, COLUMN); -1 outside. */
REPROD_HD int64_t pool_tap_pixel(const struct pool_shape *shape, int64_t row,
                                 int64_t column, int64_t tap)
{
    row += tap / POOL_TAPS - 1;
    column += tap % POOL_TAPS - 1;
    if (row < 0 || row >= shape->height || column < 0 || column >= shape->width) {
        return -1;
    }
    return row * shape->width + column;
}

#ifdef __cplusplus
extern "C" {
#endif

/* What the operation must give, whoever computes it: a `reference` hook. */
void maxpool_bwd_reference(const struct run *run, const struct tensor *inputs,
                           const struct tensor *output, double *ret_expected,
                           double *ret_bound);

#ifdef __cplusplus
}
#endif

#endif
