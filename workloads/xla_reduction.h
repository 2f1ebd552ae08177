/* What both backends of xla_reduction share. */
#ifndef WORKLOADS_XLA_REDUCTION_H
#define WORKLOADS_XLA_REDUCTION_H

#include <stdint.h>

#include "workloads/workload.h"

/* A tile of the row reduction is XLA_TILE_COLUMNS of one row (a warp), one of the column
 * reduction XLA_TILE_ROWS of one column. */
enum { XLA_TILE_COLUMNS = 32, XLA_TILE_ROWS = 2 };

struct xla_reduction_shape {
    int64_t rows;    /* a multiple of XLA_TILE_ROWS */
    int64_t columns; /* a multiple of 64 */
};

/* The tiles of a row or column are padded to so many. */
static inline int64_t xla_power_of_two_from(int64_t least)
{
    int64_t power = 1;

    while (power < least) {
        power *= 2;
    }
    return power;
}

/* The state of a run. */
struct xla_reduction {
    int64_t rows, columns;
    int64_t row_tiles, padded_row_tiles;       /* in a row; in a power of two */
    int64_t column_tiles, padded_column_tiles; /* in a column; in a power of two */
    const float *x;
    float *row_sums, *column_sums;
    float *row_parts;    /* [rows][padded_row_tiles] */
    float *column_parts; /* [padded_column_tiles][columns]; the CPU alone has it */
};

/* Makes the inputs and outputs, and row_parts. */
static inline void xla_reduction_tensors(struct run *run, struct xla_reduction *reduction)
{
    const struct xla_reduction_shape *s =
        (const struct xla_reduction_shape *)run->size->params;
    int64_t x_shape[] = { s->rows, s->columns };

    reduction->rows = s->rows;
    reduction->columns = s->columns;
    reduction->row_tiles = s->columns / XLA_TILE_COLUMNS;
    reduction->padded_row_tiles = xla_power_of_two_from(reduction->row_tiles);
    reduction->column_tiles = s->rows / XLA_TILE_ROWS;
    reduction->padded_column_tiles = xla_power_of_two_from(reduction->column_tiles);
    reduction->x = run_input_f32(run, "x", 2, x_shape, FILL_WIDE);
    reduction->row_sums = run_output_f32(run, "row_sums", 1, &s->rows);
    reduction->column_sums = run_output_f32(run, "column_sums", 1, &s->columns);
    reduction->row_parts = run_alloc_f32(run, s->rows * reduction->padded_row_tiles);
}

#endif
