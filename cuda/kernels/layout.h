/* Tensors from one order in memory to another, for libraries that want theirs. */
#ifndef CUDA_KERNELS_LAYOUT_H
#define CUDA_KERNELS_LAYOUT_H

#include "cuda/kernels/kernel.h"

enum { LAYOUT_TILE = 32, LAYOUT_ROWS = KERNEL_THREADS / LAYOUT_TILE };

/* to[batch][column][row] = from[batch][row][column], by tiles in shared memory: both
 * sides are read and written a warp of neighbours at a time. */
__global__ static void layout_transpose_kernel(const float *from, float *to,
                                               int64_t batches, int64_t rows,
                                               int64_t columns)
{
    __shared__ float tile[LAYOUT_TILE][LAYOUT_TILE + 1];
    int64_t across = ceil_div(columns, LAYOUT_TILE), down = ceil_div(rows, LAYOUT_TILE);
    int64_t own = threadIdx.x % LAYOUT_TILE, first = threadIdx.x / LAYOUT_TILE;

    for (int64_t task = blockIdx.x; task < batches * down * across; task += gridDim.x) {
        int64_t batch = task / (down * across) * rows * columns;
        int64_t row = task / across % down * LAYOUT_TILE;
        int64_t column = task % across * LAYOUT_TILE;

        for (int64_t i = first; i < LAYOUT_TILE; i += LAYOUT_ROWS) {
            if (row + i < rows && column + own < columns) {
                tile[i][own] = from[batch + (row + i) * columns + column + own];
            }
        }
        __syncthreads();
        for (int64_t i = first; i < LAYOUT_TILE; i += LAYOUT_ROWS) {
            if (column + i < columns && row + own < rows) {
                to[batch + (column + i) * rows + row + own] = tile[own][i];
            }
        }
        __syncthreads();
    }
}

static inline void layout_transpose(const float *from, float *to, int64_t batches,
                                    int64_t rows, int64_t columns)
{
    int64_t tiles =
        batches * ceil_div(rows, LAYOUT_TILE) * ceil_div(columns, LAYOUT_TILE);

    LAUNCH(layout_transpose_kernel, kernel_blocks(tiles * KERNEL_THREADS), KERNEL_THREADS,
           0, 0, from, to, batches, rows, columns);
}

/* to[c][b][a] = from[a][b][c]: weights, which are small, between (tap, in channel, out
 * channel) and (out channel, in channel, tap). */
__global__ static void layout_reverse_kernel(const float *from, float *to, int64_t a,
                                             int64_t b, int64_t c)
{
    KERNEL_FOR(i, a * b * c)
    {
        to[i] = from[(i % a * b + i / a % b) * c + i / a / b];
    }
}

static inline void layout_reverse(const float *from, float *to, int64_t a, int64_t b,
                                  int64_t c)
{
    LAUNCH_ITEMS(layout_reverse_kernel, a * b * c, from, to, a, b, c);
}

#endif
