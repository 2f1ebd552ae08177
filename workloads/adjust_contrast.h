/* What both backends of adjust_contrast share. */
#ifndef WORKLOADS_ADJUST_CONTRAST_H
#define WORKLOADS_ADJUST_CONTRAST_H

#include <stdint.h>

#include "workloads/instruments/hd.h"

#define CONTRAST_FACTOR 1.5F

/* `ordered`: so many groups of an image's pixels. */
enum { CONTRAST_SLOTS = 32 };

struct contrast_shape {
    int64_t images;
    int64_t height; /* a multiple of the CPU's TASK_ROWS */
    int64_t width, channels;
};

/* A pixel of a channel whose PIXELS add up to SUM. */
REPROD_HD float contrast_adjust(float x, float sum, int64_t pixels)
{
    float mean = sum / (float)pixels;

    return (x - mean) * CONTRAST_FACTOR + mean;
}

/* The state of a run, on every backend. */
struct adjust_contrast {
    struct contrast_shape shape;
    int64_t pixels; /* of an image */
    const float *x;
    float *y;
    float *sums;  /* [images][channels] */
    float *parts; /* [images][CONTRAST_SLOTS][channels] */
};

#endif
