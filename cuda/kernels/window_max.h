/* The gradient with respect to x of windows' maxima: the twin of
 * workloads/shared/window_max.h, with the CPU's order where it gathers. */
#ifndef CUDA_KERNELS_WINDOW_MAX_H
#define CUDA_KERNELS_WINDOW_MAX_H

#include "cuda/kernels/kernel.h"
#include "workloads/shared/window.h"

#include <math.h>

/* Makes inputs x and dy and the output dx.  The caller gives the filter and, where they
 * are needed, takes the winners. */
static inline void window_max_tensors(struct run *run, struct window_max *max)
{
    const struct pool_shape *shape = (const struct pool_shape *)run->size->params;
    int64_t extents[] = { shape->images, shape->height, shape->width, shape->channels };

    max->shape = *shape;
    max->x = run_input_f32(run, "x", 4, extents, FILL_UNIFORM);
    max->dy = run_input_f32(run, "dy", 4, extents, FILL_WIDE);
    max->dx = run_output_f32(run, "dx", 4, extents);
}

/* One element of an image batch: a window of the output, or a pixel of the input. */
struct window_place {
    int64_t image, row, column, channel;
};

__device__ static inline struct window_place
window_place_of(const struct pool_shape *shape, int64_t i)
{
    struct window_place place;

    place.channel = i % shape->channels;
    place.column = i / shape->channels % shape->width;
    place.row = i / shape->channels / shape->width % shape->height;
    place.image = i / shape->channels / shape->width / shape->height;
    return place;
}

/* The element that tap TAP of the window at PLACE falls on; -1 outside the image. */
__device__ static inline int64_t window_tap(const struct pool_shape *shape,
                                            struct window_place place, int64_t tap)
{
    int64_t pixel = pool_tap_pixel(shape, place.row, place.column, tap);

    if (pixel < 0) {
        return -1;
    }
    return (place.image * shape->height * shape->width + pixel) * shape->channels +
           place.channel;
}

__device__ static inline int32_t window_winner(const struct window_max *max,
                                               int64_t window)
{
    struct window_place place = window_place_of(&max->shape, window);
    float best = -INFINITY;
    int32_t winner = POOL_CENTRE;

    for (int32_t tap = 0; tap < POOL_WINDOW; tap++) {
        int64_t at = window_tap(&max->shape, place, tap);
        float added = max->filter[tap * max->shape.channels + place.channel];

        if (at >= 0 && max->x[at] + added > best) {
            best = max->x[at] + added;
            winner = tap;
        }
    }
    return winner;
}

__device__ static inline void window_scatter(const struct window_max *max, int64_t window,
                                             int32_t winner)
{
    int64_t to = window_tap(&max->shape, window_place_of(&max->shape, window), winner);

    atomicAdd(&max->dx[to], max->dy[window]);
}

__global__ static void window_winners_kernel(struct window_max max)
{
    KERNEL_FOR(window, pool_elements(&max.shape))
    {
        max.winners[window] = window_winner(&max, window);
    }
}

/* The gradient of one pixel: its windows in row-major order, each a term or a zero.  The
 * window one step up and left sees this pixel one step down and right. */
__global__ static void window_gather_kernel(struct window_max max)
{
    KERNEL_FOR(pixel, pool_elements(&max.shape))
    {
        struct window_place place = window_place_of(&max.shape, pixel);
        float sum = 0;

        for (int32_t tap = 0; tap < POOL_WINDOW; tap++) {
            int64_t window = window_tap(&max.shape, place, tap);

            if (window >= 0) {
                sum +=
                    max.winners[window] == POOL_WINDOW - 1 - tap ? max.dy[window] : 0.0f;
            }
        }
        max.dx[pixel] = sum;
    }
}

#endif
