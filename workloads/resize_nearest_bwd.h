/* What both backends of resize_nearest_bwd share. */
#ifndef WORKLOADS_RESIZE_NEAREST_BWD_H
#define WORKLOADS_RESIZE_NEAREST_BWD_H

#include <stdint.h>

struct nearest_shape {
    int64_t images, height, width, channels; /* of dx */
    int64_t scale;                           /* dy is as many times higher and wider */
};

/* The state of a run, on every backend. */
struct resize_nearest_bwd {
    struct nearest_shape shape;
    const float *dy;
    float *dx;
};

#endif
