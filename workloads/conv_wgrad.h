/* What both backends of conv_wgrad share. */
#ifndef WORKLOADS_CONV_WGRAD_H
#define WORKLOADS_CONV_WGRAD_H

#include <stdint.h>

/* The window is CONV_SIDE pixels wide and high.  `ordered` adds the images in CONV_SLOTS
 * groups, which a tree joins. */
enum { CONV_SIDE = 3, CONV_TAPS = CONV_SIDE * CONV_SIDE, CONV_SLOTS = 32 };

struct conv_shape {
    int64_t images, height, width;
    int64_t in_channels;  /* a multiple of 4 */
    int64_t out_channels; /* a multiple of 8 */
};

#endif
