/* What both backends of conv_dgrad share: shapes, and which pixels belong together. */
#ifndef WORKLOADS_CONV_DGRAD_H
#define WORKLOADS_CONV_DGRAD_H

#include <stdint.h>

#include "workloads/instruments/hd.h"
#include "workloads/workload.h"

enum { DGRAD_SIDE = 3, DGRAD_TAPS = DGRAD_SIDE * DGRAD_SIDE };

struct dgrad_shape {
    int64_t images, height, width; /* of dy; dx is `stride` times as high and wide */
    int64_t in_channels;           /* of the convolution: those of dx; multiple of 16 */
    int64_t out_channels;          /* those of dy; a multiple of 4 */
    int64_t stride;
};

/* Where tap TAP of an upstream pixel at AT lands; -1 outside. */
REPROD_HD int64_t dgrad_landing(int64_t at, int64_t tap, int64_t stride, int64_t extent)
{
    int64_t to = at * stride + tap - 1;

    return to < extent * stride ? to : -1;
}

/* The upstream pixel whose tap TAP lands at TO; -1 if there is none. */
REPROD_HD int64_t dgrad_origin(int64_t to, int64_t tap, int64_t stride, int64_t extent)
{
    int64_t from = to + 1 - tap;

    if (from < 0 || from % stride != 0 || from / stride >= extent) {
        return -1;
    }
    return from / stride;
}

/* The state of a run; a GPU has other scratch memory. */
struct conv_dgrad {
    struct dgrad_shape shape;
    const float *dy, *w;
    float *dx;
    float *packed; /* w as [tap][out channel][in channel] */
};

/* Makes the inputs and outputs. */
static inline void conv_dgrad_tensors(struct run *run, struct conv_dgrad *conv)
{
    const struct dgrad_shape *s = (const struct dgrad_shape *)run->size->params;
    int64_t dy_shape[] = { s->images, s->height, s->width, s->out_channels };
    int64_t w_shape[] = { DGRAD_SIDE, DGRAD_SIDE, s->in_channels, s->out_channels };
    int64_t dx_shape[] = { s->images, s->height * s->stride, s->width * s->stride,
                           s->in_channels };

    conv->shape = *s;
    conv->dy = run_input_f32(run, "dy", 4, dy_shape, FILL_WIDE);
    conv->w = run_input_f32(run, "w", 4, w_shape, FILL_UNIFORM);
    conv->dx = run_output_f32(run, "dx", 4, dx_shape);
}

#ifdef __cplusplus
extern "C" {
#endif

/* What the operation must give, whoever computes it: a `reference` hook, whose bounds are
 * those of sums of products. */
void conv_dgrad_reference(const struct run *run, const struct tensor *inputs,
                          const struct tensor *output, double *ret_expected,
                          double *ret_bound);

#ifdef __cplusplus
}
#endif

#endif
