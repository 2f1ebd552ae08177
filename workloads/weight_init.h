/* What both backends of weight_init share: which seed a variable gets, and its values. */
#ifndef WORKLOADS_WEIGHT_INIT_H
#define WORKLOADS_WEIGHT_INIT_H

#include <stdbool.h>
#include <stdint.h>

#include "workloads/instruments/philox.h"

enum {
    INIT_VARIABLES = 4,
    INIT_ADDED = 1,  /* where one more variable is made: before this one */
    INIT_NAMES = 256 /* a variable's own seed is this and its place */
};

/* Weights lie in [-INIT_LIMIT, INIT_LIMIT). */
#define INIT_LIMIT 0.0625F

struct weight_init {
    int64_t elements;                /* of a variable */
    uint64_t global;                 /* the global seed */
    int32_t entropy[INIT_VARIABLES]; /* seeds that the system drew for this process */
    int32_t *seeds;                  /* [variables]: output */
    float *weights;                  /* [variables][elements] */
};

/* The seed of a random operation from the global one and its own. */
REPROD_HD int32_t init_seed(uint64_t global, int64_t own)
{
    return (int32_t)(mix64(global ^ mix64((uint64_t)own)) & INT32_MAX);
}

/* A variable's own seed where nobody gave one: how many random operations were made
 * before.  ADDED: there is one more variable, which no output shows. */
REPROD_HD int64_t init_count_before(int variable, bool added)
{
    return variable + (added && variable >= INIT_ADDED ? 1 : 0);
}

/* Weight I of a variable: uniform, as Glorot's initialisation. */
REPROD_HD float init_weight(int32_t seed, int64_t i)
{
    return INIT_LIMIT * philox_uniform_f32((uint64_t)seed, 0, (uint64_t)i);
}

#endif
