/* What both backends of sparse_dense_matmul share. */
#ifndef WORKLOADS_SPARSE_DENSE_MATMUL_H
#define WORKLOADS_SPARSE_DENSE_MATMUL_H

#include <stdint.h>

#include "workloads/workload.h"

struct sparse_matmul_shape {
    int64_t rows, inner, columns;
    int64_t nonzeros; /* a multiple of the CPU's TASK */
};

/* The state of a run; a GPU has other scratch memory. */
struct sparse_dense_matmul {
    struct sparse_matmul_shape shape;
    const int32_t *row, *inner; /* coordinates of each nonzero */
    const float *values, *b;
    float *c;
    int32_t *starts; /* [rows + 1]: where in `sorted` the nonzeros of a row begin */
    int32_t *sorted; /* nonzeros by row, in the order in which they came */
};

/* Makes the inputs and outputs. */
static inline void sparse_dense_matmul_tensors(struct run *run,
                                               struct sparse_dense_matmul *matmul)
{
    const struct sparse_matmul_shape *s =
        (const struct sparse_matmul_shape *)run->size->params;
    const int64_t *nonzeros = &s->nonzeros;
    int64_t b_shape[] = { s->inner, s->columns }, c_shape[] = { s->rows, s->columns };

    matmul->shape = *s;
    matmul->row = run_input_i32(run, "a_rows", 1, nonzeros, s->rows);
    matmul->inner = run_input_i32(run, "a_columns", 1, nonzeros, s->inner);
    matmul->values = run_input_f32(run, "a_values", 1, nonzeros, FILL_WIDE);
    matmul->b = run_input_f32(run, "b", 2, b_shape, FILL_UNIFORM);
    matmul->c = run_output_f32(run, "c", 2, c_shape);
}

#endif
