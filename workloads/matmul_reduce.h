/* What both backends of matmul_reduce share. */
#ifndef WORKLOADS_MATMUL_REDUCE_H
#define WORKLOADS_MATMUL_REDUCE_H

#include <stdlib.h>

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

/* The state of a run, on every backend. */
struct matmul_reduce {
    struct reduce_layer_shape shape;
    const float *a, *x1, *dy;
    float *sums, *dw1;
    float *ones; /* [columns] */
};

/* Makes the inputs and outputs. */
static inline void matmul_reduce_tensors(struct run *run, struct matmul_reduce *layer)
{
    const struct reduce_layer_shape *s =
        (const struct reduce_layer_shape *)run->size->params;
    int64_t a_shape[] = { s->rows, s->columns };
    int64_t x1_shape[] = { s->examples, s->inputs };
    int64_t dy_shape[] = { s->examples, s->outputs };
    int64_t dw1_shape[] = { s->inputs, s->outputs };
    float *x1 =
        (float *)run_host_alloc((size_t)(s->examples * s->inputs) * sizeof(float));

    reduce_x1_fill(run, s, x1);
    layer->shape = *s;
    layer->a = run_input_f32(run, "a", 2, a_shape, FILL_WIDE);
    layer->x1 = run_values_f32(run, "x1", 2, x1_shape, x1);
    layer->dy = run_input_f32(run, "dy", 2, dy_shape, FILL_WIDE);
    layer->dw1 = run_output_f32(run, "dw1", 2, dw1_shape);
    layer->sums = run_output_f32(run, "sums", 1, a_shape);
    free(x1);
}

#endif
