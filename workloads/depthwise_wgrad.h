/* What both backends of depthwise_wgrad share. */
#ifndef WORKLOADS_DEPTHWISE_WGRAD_H
#define WORKLOADS_DEPTHWISE_WGRAD_H

#include <stdint.h>

#include "workloads/workload.h"

/* `ordered` adds rows of pixels in DEPTHWISE_SLOTS groups, which a tree joins. */
enum {
    DEPTHWISE_SIDE = 3,
    DEPTHWISE_TAPS = DEPTHWISE_SIDE * DEPTHWISE_SIDE,
    DEPTHWISE_SLOTS = 32
};

struct depthwise_shape {
    int64_t images, height, width, channels;
};

/* The state of a run; a GPU has other scratch memory. */
struct depthwise_wgrad {
    struct depthwise_shape shape;
    const float *x, *dy;
    float *dw;
    int64_t elements; /* of dw */
    float *partials;  /* one dw for each slot of rows */
};

/* Makes the inputs and outputs. */
static inline void depthwise_wgrad_tensors(struct run *run, struct depthwise_wgrad *conv)
{
    const struct depthwise_shape *s = (const struct depthwise_shape *)run->size->params;
    int64_t x_shape[] = { s->images, s->height, s->width, s->channels };
    int64_t dw_shape[] = { DEPTHWISE_SIDE, DEPTHWISE_SIDE, s->channels };

    conv->shape = *s;
    conv->elements = DEPTHWISE_TAPS * s->channels;
    conv->x = run_input_f32(run, "x", 4, x_shape, FILL_UNIFORM);
    conv->dy = run_input_f32(run, "dy", 4, x_shape, FILL_WIDE);
    conv->dw = run_output_f32(run, "dw", 3, dw_shape);
}

#endif
