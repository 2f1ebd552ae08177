/* The gradient with respect to x of windows' maxima, on a CPU: scattered with atomic adds
 * or gathered in a fixed order.  The functions are called by the threads of a team, each
 * for rows of its own. */
#ifndef WORKLOADS_SHARED_WINDOW_MAX_H
#define WORKLOADS_SHARED_WINDOW_MAX_H

#include "workloads/shared/window.h"
#include "workloads/workload.h"

#include <math.h>
#include <omp.h>
#include <string.h>

/* Makes inputs x and dy and the output dx, and takes the scratch memory.  The filter is
 * of zeros. */
static inline void window_max_setup(struct run *run, struct window_max *max)
{
    const struct pool_shape *shape = run->size->params;
    int64_t extents[] = { shape->images, shape->height, shape->width, shape->channels };
    int64_t taps = POOL_WINDOW * shape->channels;
    float *filter = run_alloc_f32(run, taps);

    max->shape = *shape;
    max->x = run_input_f32(run, "x", 4, extents, FILL_UNIFORM);
    max->dy = run_input_f32(run, "dy", 4, extents, FILL_WIDE);
    max->dx = run_output_f32(run, "dx", 4, extents);
    max->winners = run_alloc_i32(run, pool_elements(shape));
    max->best = run_alloc_f32(run, run->threads * shape->channels);
    memset(filter, 0, (size_t)taps * sizeof *filter);
    max->filter = filter;
}

static inline void window_winners(const struct window_max *max, const float *image,
                                  int64_t row, int64_t column, float *best,
                                  int32_t *winners)
{
    int64_t channels = max->shape.channels;

    for (int64_t c = 0; c < channels; c++) {
        best[c] = -INFINITY;
        winners[c] = POOL_CENTRE;
    }
    for (int32_t tap = 0; tap < POOL_WINDOW; tap++) {
        int64_t pixel = pool_tap_pixel(&max->shape, row, column, tap);
        const float *x = image + pixel * channels, *filter = max->filter + tap * channels;

        if (pixel < 0) {
            continue;
        }
#pragma omp simd
        for (int64_t c = 0; c < channels; c++) {
            float value = x[c] + filter[c];
            int32_t wins = -(value > best[c]); /* all bits or none: no branch */

            winners[c] = (tap & wins) | (winners[c] & ~wins);
            best[c] = wins ? value : best[c];
        }
    }
}

/* ROW counts over the rows of all images, here and below. */
static inline void row_winners(const struct window_max *max, int64_t row)
{
    const struct pool_shape *shape = &max->shape;
    int64_t row_elements = shape->width * shape->channels;
    const float *image = max->x + row / shape->height * shape->height * row_elements;
    float *best = max->best + omp_get_thread_num() * shape->channels;

    for (int64_t column = 0; column < shape->width; column++) {
        window_winners(max, image, row % shape->height, column, best,
                       max->winners + row * row_elements + column * shape->channels);
    }
}

static inline void row_clear(const struct window_max *max, int64_t row)
{
    int64_t row_elements = max->shape.width * max->shape.channels;

    memset(max->dx + row * row_elements, 0, (size_t)row_elements * sizeof(float));
}

static inline void window_scatter(const struct window_max *max, int64_t row,
                                  int64_t column)
{
    const struct pool_shape *shape = &max->shape;
    int64_t channels = shape->channels, to[POOL_WINDOW];
    int64_t plane = row / shape->height * shape->height * shape->width;
    int64_t window = (row * shape->width + column) * channels;

    for (int64_t tap = 0; tap < POOL_WINDOW; tap++) {
        to[tap] =
            (plane + pool_tap_pixel(shape, row % shape->height, column, tap)) * channels;
    }
    for (int64_t c = 0; c < channels; c++) {
        float *dx = max->dx + to[max->winners[window + c]] + c;

#pragma omp atomic
        *dx += max->dy[window + c];
    }
}

/* The gradient of one pixel: its windows in row-major order, each a term or a zero. */
static inline void pixel_gather(const struct window_max *max, int64_t row, int64_t column)
{
    const struct pool_shape *shape = &max->shape;
    int64_t plane = row / shape->height * shape->height * shape->width;
    int64_t channels = shape->channels;
    float *dx = max->dx + (row * shape->width + column) * channels;

    memset(dx, 0, (size_t)channels * sizeof(float));
    for (int32_t tap = 0; tap < POOL_WINDOW; tap++) {
        int64_t window = pool_tap_pixel(shape, row % shape->height, column, tap);
        const float *dy = max->dy + (plane + window) * channels;
        const int32_t *winners = max->winners + (plane + window) * channels;

        if (window < 0) {
            continue;
        }
        /* The window one step up and left sees this pixel one step down and right. */
#pragma omp simd
        for (int64_t c = 0; c < channels; c++) {
            float term = dy[c];

            dx[c] += winners[c] == POOL_WINDOW - 1 - tap ? term : 0.0F;
        }
    }
}

static inline void row_gather(const struct window_max *max, int64_t row)
{
    for (int64_t column = 0; column < max->shape.width; column++) {
        pixel_gather(max, row, column);
    }
}

#endif
