/* What both backends of xla_reduction share. */
#ifndef WORKLOADS_XLA_REDUCTION_H
#define WORKLOADS_XLA_REDUCTION_H

#include <stdint.h>

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

    while (power < least)
        power *= 2;
    return power;
}

#endif
