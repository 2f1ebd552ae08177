/* What both backends of spatial_sampler_bwd share: where samples lie. */
#ifndef WORKLOADS_SPATIAL_SAMPLER_BWD_H
#define WORKLOADS_SPATIAL_SAMPLER_BWD_H

#include <stdint.h>

#include "workloads/instruments/hd.h"
#include "workloads/workload.h"

enum { SAMPLER_CORNERS = 4 };

struct sampler_shape {
    int64_t images, height, width, channels; /* of the image */
    int64_t samples;                         /* of each image */
};

/* A sample's upper left pixel, and how far right and down of it the sample lies. */
struct sampler_place {
    int64_t row, column;
    float down, right;
};

REPROD_HD struct sampler_place sampler_place_of(const struct sampler_shape *s,
                                                const float *grid, int64_t sample)
{
    float x = (grid[2 * sample] + 1) * ((float)(s->width - 1) / 2);
    float y = (grid[2 * sample + 1] + 1) * ((float)(s->height - 1) / 2);
    struct sampler_place place = { (int64_t)y, (int64_t)x, 0, 0 };

    if (place.row > s->height - 2) {
        place.row = s->height - 2;
    }
    if (place.column > s->width - 2) {
        place.column = s->width - 2;
    }
    place.down = y - (float)place.row;
    place.right = x - (float)place.column;
    return place;
}

REPROD_HD float sampler_corner_weight(const struct sampler_place *place, int corner)
{
    return (corner / 2 ? place->down : 1 - place->down) *
           (corner % 2 ? place->right : 1 - place->right);
}

REPROD_HD int64_t sampler_corner_index(const struct sampler_shape *s, int64_t image,
                                       const struct sampler_place *place, int corner)
{
    return ((image * s->height + place->row + corner / 2) * s->width + place->column +
            corner % 2) *
           s->channels;
}

/* The state of a run; a GPU has other scratch memory. */
struct spatial_sampler_bwd {
    struct sampler_shape shape;
    const float *x, *grid, *dy;
    float *dx, *dgrid;
    int32_t *order;  /* for each image: its samples, sorted by their upper left pixel */
    int32_t *begins; /* for each image: where the samples of each pixel begin in it */
};

/* Makes the inputs and outputs. */
static inline void spatial_sampler_bwd_tensors(struct run *run,
                                               struct spatial_sampler_bwd *sampler)
{
    const struct sampler_shape *s = (const struct sampler_shape *)run->size->params;
    int64_t x_shape[] = { s->images, s->height, s->width, s->channels };
    int64_t grid_shape[] = { s->images, s->samples, 2 };
    int64_t dy_shape[] = { s->images, s->samples, s->channels };

    sampler->shape = *s;
    sampler->x = run_input_f32(run, "x", 4, x_shape, FILL_UNIFORM);
    sampler->grid = run_input_f32(run, "grid", 3, grid_shape, FILL_UNIFORM);
    sampler->dy = run_input_f32(run, "dy", 3, dy_shape, FILL_WIDE);
    sampler->dx = run_output_f32(run, "dx", 4, x_shape);
    sampler->dgrid = run_output_f32(run, "dgrid", 3, grid_shape);
}

#endif
