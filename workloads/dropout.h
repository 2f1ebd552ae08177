/* What both backends of dropout share. */
#ifndef WORKLOADS_DROPOUT_H
#define WORKLOADS_DROPOUT_H

#include <stdint.h>

#include "workloads/instruments/bits.h"
#include "workloads/instruments/hd.h"

/* The probability that an element is kept. */
#define DROPOUT_KEEP 0.75F

enum { DROPOUT_STEPS = 4 };

struct dropout_shape {
    int64_t elements; /* a multiple of 512 */
};

/* What a state of SplitMix64 (Steele, Lea, Flood, 2014) grows by from number to number:
 * the state is a counter, the number its mix. */
#define DROPOUT_STATE_STEP 0x9e3779b97f4a7c15u

/* The number of STATE. */
REPROD_HD uint32_t dropout_number(uint64_t state)
{
    return (uint32_t)(mix64(state) >> 32);
}

REPROD_HD float dropout_element(float residual, float x, uint32_t number)
{
    int keep = (float)(number >> 8) * 0x1p-24F < DROPOUT_KEEP;

    return residual + (keep ? x / DROPOUT_KEEP : 0);
}

#endif
