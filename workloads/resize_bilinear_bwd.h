/* What both backends of resize_bilinear_bwd share: which pixels touch, and how much. */
#ifndef WORKLOADS_RESIZE_BILINEAR_BWD_H
#define WORKLOADS_RESIZE_BILINEAR_BWD_H

#include <stdint.h>

#include "workloads/instruments/hd.h"

struct bilinear_shape {
    int64_t images, height, width, channels; /* of dx */
    int64_t scale;                           /* dy is as many times higher and wider */
};

/* Where a row or a column of dy comes from. */
struct bilinear_source {
    int64_t lower, upper;
    float lerp; /* weight of `upper`; `lower` has the rest */
};

REPROD_HD struct bilinear_source bilinear_source_of(int64_t at, int64_t scale,
                                                    int64_t extent)
{
    int64_t twice = 2 * at + 1 - scale; /* in units of 1 / (2 * scale) pixel */
    int64_t lower = (twice + 2 * scale) / (2 * scale) - 1;
    struct bilinear_source source;

    source.lower = lower < 0 ? 0 : lower;
    source.upper = lower + 1 < extent ? lower + 1 : extent - 1;
    source.lerp = (float)(twice - lower * 2 * scale) / (float)(2 * scale);
    return source;
}

/* How much of a row or column of dy with source SOURCE belongs to TO. */
REPROD_HD float bilinear_share(const struct bilinear_source *source, int64_t to)
{
    return (source->lower == to ? 1 - source->lerp : 0) +
           (source->upper == to ? source->lerp : 0);
}

/* Rows or columns [first, end) of dy touch TO, and no others. */
REPROD_HD int64_t bilinear_touch_first(int64_t to, int64_t scale)
{
    return to == 0 ? 0 : to * scale - scale / 2;
}

REPROD_HD int64_t bilinear_touch_end(int64_t to, int64_t scale, int64_t extent)
{
    return to == extent - 1 ? extent * scale : (to + 1) * scale + scale / 2;
}

/* The state of a run, on every backend. */
struct resize_bilinear_bwd {
    struct bilinear_shape shape;
    const float *dy;
    float *dx;
    struct bilinear_source *rows, *columns; /* of dy */
};

#endif
