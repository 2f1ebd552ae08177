/* What both backends of conv_wgrad share. */
#ifndef WORKLOADS_CONV_WGRAD_H
#define WORKLOADS_CONV_WGRAD_H

#include <stdint.h>

#include "workloads/workload.h"

/* The window is CONV_SIDE pixels wide and high.  `ordered` adds the images in CONV_SLOTS
 * groups, which a tree joins. */
enum { CONV_SIDE = 3, CONV_TAPS = CONV_SIDE * CONV_SIDE, CONV_SLOTS = 32 };

struct conv_shape {
    int64_t images, height, width;
    int64_t in_channels;  /* a multiple of 4 */
    int64_t out_channels; /* a multiple of 8 */
};

/* The state of a run; a GPU has other scratch memory. */
struct conv_wgrad {
    struct conv_shape shape;
    const float *x, *dy;
    float *dw;
    int64_t elements; /* of dw */
    float *partials;  /* one dw for each image slot and for each thread */
};

/* Makes the inputs and outputs. */
static inline void conv_wgrad_tensors(struct run *run, struct conv_wgrad *conv)
{
    const struct conv_shape *s = (const struct conv_shape *)run->size->params;
    int64_t x_shape[] = { s->images, s->height, s->width, s->in_channels };
    int64_t dy_shape[] = { s->images, s->height, s->width, s->out_channels };
    int64_t dw_shape[] = { CONV_SIDE, CONV_SIDE, s->in_channels, s->out_channels };

    conv->shape = *s;
    conv->elements = CONV_TAPS * s->in_channels * s->out_channels;
    conv->x = run_input_f32(run, "x", 4, x_shape, FILL_UNIFORM);
    conv->dy = run_input_f32(run, "dy", 4, dy_shape, FILL_WIDE);
    conv->dw = run_output_f32(run, "dw", 4, dw_shape);
}

#ifdef __cplusplus
extern "C" {
#endif

/* What the operation must give, whoever computes it: a `reference` hook. */
void conv_wgrad_reference(const struct run *run, const struct tensor *inputs,
                          const struct tensor *output, double *ret_expected,
                          double *ret_bound);

#ifdef __cplusplus
}
#endif

#endif
