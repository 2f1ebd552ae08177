/* A small network for inference, whose layers are each computed by one of several
 * tactics: a[l+1][n,j] = max(0, sum over k of a[l][n,k] * w[l][k,j]), without max for the
 * last.
 *
 * A tactic is an order in which the products of an element are added: input features by
 * strides, upwards or downwards.  Each is deterministic, and all of them run the same
 * instructions, so that hardly anything but chance tells their times apart. */
#ifndef WORKLOADS_TUNING_TACTICS_H
#define WORKLOADS_TUNING_TACTICS_H

#include <stdint.h>
#include <stdio.h>

enum {
    NETWORK_LAYERS = 4,
    NETWORK_TACTICS = 12,
    NETWORK_NAMES_SIZE = NETWORK_LAYERS * 16
};

struct network_shape {
    int64_t batch;
    int64_t features; /* of every layer; a multiple of 32 */
};

static const char *const network_tactics[NETWORK_TACTICS] = {
    "gemm-k1", "gemm-k1-down", "gemm-k2",  "gemm-k2-down",  "gemm-k4",  "gemm-k4-down",
    "gemm-k8", "gemm-k8-down", "gemm-k16", "gemm-k16-down", "gemm-k32", "gemm-k32-down",
};

/* The order of TACTIC: a permutation of FEATURES. */
static inline void network_order(int tactic, int64_t features, int32_t *ret_order)
{
    int64_t stride = (int64_t)1 << tactic / 2, at = 0;

    for (int64_t first = 0; first < stride; first++) {
        for (int64_t k = first; k < features; k += stride, at++) {
            ret_order[tactic % 2 ? features - 1 - at : at] = (int32_t)k;
        }
    }
}

/* The names of the CHOSEN tactics, with blanks between them. */
static inline void network_names(const int chosen[NETWORK_LAYERS],
                                 char ret_names[NETWORK_NAMES_SIZE])
{
    size_t length = 0;

    for (int layer = 0; layer < NETWORK_LAYERS; layer++) {
        length +=
            (size_t)snprintf(ret_names + length, NETWORK_NAMES_SIZE - length, "%s%s",
                             layer ? " " : "", network_tactics[chosen[layer]]);
    }
}

#endif
