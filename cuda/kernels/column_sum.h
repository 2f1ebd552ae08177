/* Rows added one after another, sums[c] = ((0 + row 0) + row 1) + ... in column c: the
 * order of a serial loop, and so its bits.  All that is serial are the additions of a
 * column: a block reads the next tile of rows while its first warp adds those of the
 * last. */
#ifndef CUDA_KERNELS_COLUMN_SUM_H
#define CUDA_KERNELS_COLUMN_SUM_H

#include "cuda/kernels/kernel.h"

enum {
    COLUMN_LINES = 32, /* a block is a warp of columns by so many rows of threads */
    COLUMN_SHARE = 4,  /* rows of a tile that a thread reads */
    COLUMN_TILE = COLUMN_LINES * COLUMN_SHARE
};

struct column_sum {
    int64_t count, width;
    const float *rows;    /* [any][width] */
    const int32_t *order; /* [count]: the row that is added then; NULL: as they lie */
    float *sums;          /* [width] */
};

/* This thread's elements of the tile that begins with row BEGIN of the order; zeros where
 * there is nothing: a sum that began with 0 is never -0, so they do not change it. */
__device__ static inline void column_read(const struct column_sum *sum, int64_t column,
                                          int64_t begin, float ret_share[COLUMN_SHARE])
{
#pragma unroll
    for (int i = 0; i < COLUMN_SHARE; i++) {
        int64_t at = begin + i * COLUMN_LINES + threadIdx.y;

        ret_share[i] = 0;
        if (at < sum->count && column < sum->width) {
            ret_share[i] =
                sum->rows[(sum->order ? sum->order[at] : at) * sum->width + column];
        }
    }
}

__device__ static inline void column_write(float tile[COLUMN_TILE][WARP_LANES],
                                           const float share[COLUMN_SHARE])
{
#pragma unroll
    for (int i = 0; i < COLUMN_SHARE; i++) {
        tile[i * COLUMN_LINES + threadIdx.y][threadIdx.x] = share[i];
    }
}

__global__ static void __launch_bounds__(WARP_LANES *COLUMN_LINES)
    column_sum_kernel(struct column_sum all)
{
    __shared__ float tile[COLUMN_TILE][WARP_LANES];
    int64_t column = (int64_t)blockIdx.x * WARP_LANES + threadIdx.x;
    float share[COLUMN_SHARE], sum = 0;

    column_read(&all, column, 0, share);
    for (int64_t begin = 0; begin < all.count; begin += COLUMN_TILE) {
        column_write(tile, share);
        __syncthreads();
        column_read(&all, column, begin + COLUMN_TILE, share);
        if (threadIdx.y == 0) {
#pragma unroll 16
            for (int i = 0; i < COLUMN_TILE; i++) {
                sum += tile[i][threadIdx.x];
            }
        }
        __syncthreads();
    }
    if (threadIdx.y == 0 && column < all.width) {
        all.sums[column] = sum;
    }
}

static inline void column_sum_add(const struct column_sum *sum)
{
    LAUNCH(column_sum_kernel, (unsigned)ceil_div(sum->width, WARP_LANES),
           dim3(WARP_LANES, COLUMN_LINES), 0, 0, *sum);
}

#endif
