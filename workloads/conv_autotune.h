/* What both backends of conv_autotune share. */
#ifndef WORKLOADS_CONV_AUTOTUNE_H
#define WORKLOADS_CONV_AUTOTUNE_H

#include <stdint.h>

enum { AUTOTUNE_SIDE = 3, AUTOTUNE_TAPS = AUTOTUNE_SIDE * AUTOTUNE_SIDE, BRANCHES = 4 };

struct autotune_shape {
    int64_t images, height, width;
    int64_t in_channels;  /* a multiple of 4, at most 64 */
    int64_t out_channels; /* of all branches; a multiple of BRANCHES * 16 */
};

#endif
