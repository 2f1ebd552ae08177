/* What both backends of depthwise_wgrad share. */
#ifndef WORKLOADS_DEPTHWISE_WGRAD_H
#define WORKLOADS_DEPTHWISE_WGRAD_H

#include <stdint.h>

/* `ordered` adds rows of pixels in DEPTHWISE_SLOTS groups, which a tree joins. */
enum {
    DEPTHWISE_SIDE = 3,
    DEPTHWISE_TAPS = DEPTHWISE_SIDE * DEPTHWISE_SIDE,
    DEPTHWISE_SLOTS = 32
};

struct depthwise_shape {
    int64_t images, height, width, channels;
};

#endif
