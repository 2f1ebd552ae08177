/* Windows of 3x3 over an image (stride 1, padding 1), each of which passes its gradient
 * to the position of its maximum: what the gradients of max-pooling and of dilation have
 * in common.  C and CUDA; window_max.h and its twin in cuda/kernels compute with it. */
#ifndef WORKLOADS_SHARED_WINDOW_H
#define WORKLOADS_SHARED_WINDOW_H

#include <stdint.h>

#include "workloads/instruments/hd.h"

enum {
    POOL_TAPS = 3,
    POOL_WINDOW = POOL_TAPS * POOL_TAPS,
    POOL_CENTRE = POOL_WINDOW / 2
};

struct pool_shape {
    int64_t images, height, width, channels;
};

/* The maximum of a window is that of x + filter, the first one in row-major order when
 * several are equal. */
struct window_max {
    struct pool_shape shape;
    const float *x, *dy;
    const float *filter; /* [taps][channels]; of zeros where there is none */
    float *dx;
    int32_t *winners; /* for each window and channel: the tap (0 … 8) of its maximum */
    float *best;      /* on a CPU: a row of channels for each thread */
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

REPROD_HD int64_t pool_elements(const struct pool_shape *shape)
{
    return shape->images * shape->height * shape->width * shape->channels;
}

#endif
