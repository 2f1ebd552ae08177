/* What both backends of stateful_random share: the ops, and the numbers they take. */
#ifndef WORKLOADS_STATEFUL_RANDOM_H
#define WORKLOADS_STATEFUL_RANDOM_H

#include <stdint.h>

#include "workloads/instruments/philox.h"
#include "workloads/shared/exp_log.h"

enum {
    STATEFUL_LENGTHS = 8, /* an op has 1 to 8 units of elements */
    STATEFUL_FIRST = 1    /* position of a generator's first number */
};

struct stateful_shape {
    int64_t ops; /* a multiple of STATEFUL_LENGTHS */
    int64_t unit;
};

struct stateful_random {
    struct stateful_shape shape;
    uint64_t seed, stream; /* of the generator */
    const float *x;        /* [elements of all ops] */
    float *y;              /* likewise */
    int64_t *positions;    /* [ops]: the first number that each op takes */
    int64_t *state;        /* scratch: the generator's position, and who has arrived */
};

/* How many elements come before those of op OP: lengths go round as 8, 3, 6, 1, 4, 7, 2,
 * 5 units, so that long ones stand beside short ones. */
REPROD_HD int64_t stateful_before(const struct stateful_shape *shape, int64_t op)
{
    int64_t units = op / STATEFUL_LENGTHS * STATEFUL_LENGTHS * (STATEFUL_LENGTHS + 1) / 2;

    for (int64_t i = 0; i < op % STATEFUL_LENGTHS; i++) {
        units += (7 + 3 * i) % STATEFUL_LENGTHS + 1;
    }
    return units * shape->unit;
}

/* Where the numbers of op OP begin if those of all ops before it were taken in order. */
REPROD_HD int64_t stateful_skip_to(const struct stateful_shape *shape, int64_t op)
{
    return STATEFUL_FIRST + stateful_before(shape, op);
}

/* The generator of op OP where each has its own. */
REPROD_HD uint64_t stateful_own_stream(uint64_t stream, int64_t op)
{
    return mix64(stream + (uint64_t)op);
}

/* What an op computes of an element before its numbers are needed. */
REPROD_HD float stateful_activation(float x)
{
    return exp_f32(x);
}

#endif
