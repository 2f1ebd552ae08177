/* Exclusive running sums of counts, in place: values[i] becomes the sum of the values
 * before it.  A block has a tile: the blocks first add up their tiles, then each adds up
 * the totals of the tiles before its own. */
#ifndef CUDA_KERNELS_SCAN_H
#define CUDA_KERNELS_SCAN_H

#include "cuda/kernels/kernel.h"

enum {
    SCAN_ITEMS = 8, /* of a thread */
    SCAN_WARPS = KERNEL_THREADS / WARP_LANES,
    SCAN_TILE = SCAN_ITEMS * KERNEL_THREADS
};

struct scan {
    int64_t count;
    int32_t *values;
    int32_t *totals; /* of the tiles: scratch */
};

static inline int64_t scan_tiles(const struct scan *scan)
{
    return ceil_div(scan->count, SCAN_TILE);
}

/* Takes the scratch memory; `count` is filled in. */
static inline void scan_init(struct run *run, struct scan *scan)
{
    scan->totals =
        (int32_t *)run_alloc(run, (size_t)scan_tiles(scan) * sizeof *scan->totals);
}

/* The thread's values, a warp's neighbours at a time; returns their sum over the warp. */
__device__ static inline int32_t scan_read(const struct scan *scan, int64_t first,
                                           int32_t ret_values[SCAN_ITEMS])
{
    int32_t sum = 0;

#pragma unroll
    for (int i = 0; i < SCAN_ITEMS; i++) {
        int64_t at = first + i * WARP_LANES;

        ret_values[i] = at < scan->count ? scan->values[at] : 0;
        sum += ret_values[i];
    }
    return warp_sum(sum);
}

/* Where the values of this thread's warp begin, for its lane. */
__device__ static inline int64_t scan_first(int64_t tile)
{
    int64_t warp = threadIdx.x / WARP_LANES;

    return tile * SCAN_TILE + warp * SCAN_ITEMS * WARP_LANES + threadIdx.x % WARP_LANES;
}

__global__ static void scan_total_kernel(struct scan scan)
{
    __shared__ int32_t sums[SCAN_WARPS];
    int32_t values[SCAN_ITEMS], total = 0;
    int32_t sum = scan_read(&scan, scan_first(blockIdx.x), values);

    if (threadIdx.x % WARP_LANES == 0) {
        sums[threadIdx.x / WARP_LANES] = sum;
    }
    __syncthreads();
    if (threadIdx.x > 0) {
        return;
    }
    for (int warp = 0; warp < SCAN_WARPS; warp++) {
        total += sums[warp];
    }
    scan.totals[blockIdx.x] = total;
}

/* The sum of VALUE over the lanes up to this one. */
__device__ static inline int32_t scan_lanes(int32_t value)
{
    for (int step = 1; step < WARP_LANES; step *= 2) {
        int32_t before = __shfl_up_sync(ALL_LANES, value, (unsigned)step);

        if (threadIdx.x % WARP_LANES >= (unsigned)step) {
            value += before;
        }
    }
    return value;
}

__global__ static void scan_place_kernel(struct scan scan)
{
    __shared__ int32_t sums[SCAN_WARPS], before[SCAN_WARPS];
    unsigned own = threadIdx.x / WARP_LANES;
    int64_t first = scan_first(blockIdx.x);
    int32_t values[SCAN_ITEMS], sum = scan_read(&scan, first, values), place = 0;

    for (int64_t tile = threadIdx.x; tile < blockIdx.x; tile += KERNEL_THREADS) {
        place += scan.totals[tile];
    }
    place = warp_sum(place);
    if (threadIdx.x % WARP_LANES == 0) {
        sums[own] = sum;
        before[own] = place;
    }
    __syncthreads();
    place = 0;
    for (unsigned warp = 0; warp < SCAN_WARPS; warp++) {
        place += before[warp] + (warp < own ? sums[warp] : 0);
    }
    for (int i = 0; i < SCAN_ITEMS; i++) {
        int32_t until = scan_lanes(values[i]);
        int64_t at = first + i * WARP_LANES;

        if (at < scan.count) {
            scan.values[at] = place + until - values[i];
        }
        place += __shfl_sync(ALL_LANES, until, WARP_LANES - 1);
    }
}

static inline void scan_run(const struct scan *scan)
{
    unsigned tiles = (unsigned)scan_tiles(scan);

    if (tiles > 1) {
        LAUNCH(scan_total_kernel, tiles, KERNEL_THREADS, 0, 0, *scan);
    }
    LAUNCH(scan_place_kernel, tiles, KERNEL_THREADS, 0, 0, *scan);
}

#endif
