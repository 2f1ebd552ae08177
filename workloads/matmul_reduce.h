/* What both backends of matmul_reduce share. */
#ifndef WORKLOADS_MATMUL_REDUCE_H
#define WORKLOADS_MATMUL_REDUCE_H

#include "workloads/instruments/philox.h"
#include "workloads/workload.h"

struct reduce_layer_shape {
    int64_t rows, columns; /* of a; multiples of 4 and of 32 */
    int64_t examples;      /* a multiple of 8 */
    int64_t inputs;        /* of the layer, with the one; a multiple of 4 */
    int64_t outputs;       /* of the layer */
};

/* [x 1]: uniform numbers, and in the last column ones. */
static inline void reduce_x1_fill(const struct run *run,
                                  const struct reduce_layer_shape *shape, float *x1)
{
    uint64_t stream = philox_stream(run->seed, run->workload->name, "x1");

    for (int64_t i = 0; i < shape->examples * shape->inputs; i++) {
        x1[i] = i % shape->inputs == shape->inputs - 1
                    ? 1
                    : philox_uniform_f32(run->seed, stream, (uint64_t)i);
    }
}

#endif
