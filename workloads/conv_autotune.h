/* What both backends of conv_autotune share. */
#ifndef WORKLOADS_CONV_AUTOTUNE_H
#define WORKLOADS_CONV_AUTOTUNE_H

#include <stdint.h>

#include "workloads/workload.h"

enum { AUTOTUNE_SIDE = 3, AUTOTUNE_TAPS = AUTOTUNE_SIDE * AUTOTUNE_SIDE, BRANCHES = 4 };

struct autotune_shape {
    int64_t images, height, width;
    int64_t in_channels;  /* a multiple of 4, at most 64 */
    int64_t out_channels; /* of all branches; a multiple of BRANCHES * 16 */
};

#ifdef __cplusplus
extern "C" {
#endif

/* What the operation must give, whoever computes it: a `reference` hook, whose bounds are
 * those of sums of products. */
void conv_autotune_reference(const struct run *run, const struct tensor *inputs,
                             const struct tensor *output, double *ret_expected,
                             double *ret_bound);

#ifdef __cplusplus
}
#endif

#endif
