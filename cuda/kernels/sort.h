/* A stable sort of row numbers by the destination of each row, so that one owner can add
 * the rows of a destination in their order: what `ordered` variants of scatters have in
 * the place of atomic adds.  The result depends on the destinations alone.
 *
 * Method: least significant digit first, four bits a pass; a block counts the digits of a
 * tile, whose threads have neighbouring items, so that position follows from counts
 * (Satish, Harris, Garland, "Designing efficient sorting algorithms for manycore GPUs",
 * IPDPS 2009). */
#ifndef CUDA_KERNELS_SORT_H
#define CUDA_KERNELS_SORT_H

#include "cuda/kernels/kernel.h"
#include "cuda/kernels/scan.h"

enum {
    SORT_DIGIT_BITS = 4,
    SORT_DIGITS = 1 << SORT_DIGIT_BITS,
    SORT_ITEMS = 16, /* of a thread */
    SORT_TILE = SORT_ITEMS * KERNEL_THREADS
};

struct row_sort {
    int64_t rows, destinations;
    int32_t *sorted; /* [rows]: row numbers by destination, rows without one last */
    int32_t *starts; /* [destinations + 1]: where in `sorted` a destination begins */
    int32_t *keys[2], *items[2]; /* [rows]: scratch */
    struct scan counts;          /* [SORT_DIGITS][tiles]: where digits of tiles begin */
};

static inline int64_t sort_tiles(const struct row_sort *sort)
{
    return ceil_div(sort->rows, SORT_TILE);
}

/* Takes the memory; rows and destinations are filled in. */
static inline void sort_init(struct run *run, struct row_sort *sort)
{
    size_t bytes = (size_t)sort->rows * sizeof(int32_t);

    for (int side = 0; side < 2; side++) {
        sort->keys[side] = (int32_t *)run_alloc(run, bytes);
        sort->items[side] = (int32_t *)run_alloc(run, bytes);
    }
    sort->starts = run_alloc_i32(run, sort->destinations + 1);
    sort->counts.count = sort_tiles(sort) * SORT_DIGITS;
    sort->counts.values = run_alloc_i32(run, sort->counts.count);
    scan_init(run, &sort->counts);
}

/* A row without a destination sorts behind all others. */
__global__ static void sort_start_kernel(struct row_sort sort, const int32_t *index)
{
    KERNEL_FOR(row, sort.rows)
    {
        sort.keys[0][row] = index[row] < 0 ? (int32_t)sort.destinations : index[row];
        sort.items[0][row] = (int32_t)row;
    }
}

/* How often each digit occurs among a thread's items. */
__device__ static inline void sort_count_items(const struct row_sort *sort,
                                               const int32_t *keys, int shift,
                                               int32_t counts[SORT_DIGITS])
{
    int64_t first = kernel_thread() * SORT_ITEMS;

    for (int digit = 0; digit < SORT_DIGITS; digit++) {
        counts[digit] = 0;
    }
    for (int64_t i = first; i < first + SORT_ITEMS && i < sort->rows; i++) {
        counts[keys[i] >> shift & (SORT_DIGITS - 1)]++;
    }
}

__global__ static void sort_count_kernel(struct row_sort sort, int from, int shift)
{
    __shared__ int32_t totals[SORT_DIGITS];
    int32_t counts[SORT_DIGITS];

    if (threadIdx.x < SORT_DIGITS) {
        totals[threadIdx.x] = 0;
    }
    __syncthreads();
    sort_count_items(&sort, sort.keys[from], shift, counts);
    for (int digit = 0; digit < SORT_DIGITS; digit++) {
        if (counts[digit]) {
            atomicAdd(&totals[digit], counts[digit]);
        }
    }
    __syncthreads();
    if (threadIdx.x < SORT_DIGITS) {
        sort.counts.values[threadIdx.x * gridDim.x + blockIdx.x] = totals[threadIdx.x];
    }
}

__global__ static void sort_place_kernel(struct row_sort sort, int from, int shift)
{
    __shared__ int32_t places[SORT_DIGITS][KERNEL_THREADS];
    int64_t first = kernel_thread() * SORT_ITEMS;
    int32_t counts[SORT_DIGITS];

    sort_count_items(&sort, sort.keys[from], shift, counts);
    for (int digit = 0; digit < SORT_DIGITS; digit++) {
        places[digit][threadIdx.x] = counts[digit];
    }
    __syncthreads();
    if (threadIdx.x < SORT_DIGITS) {
        int32_t place = sort.counts.values[threadIdx.x * gridDim.x + blockIdx.x];

        for (int thread = 0; thread < KERNEL_THREADS; thread++) {
            int32_t next = place + places[threadIdx.x][thread];

            places[threadIdx.x][thread] = place;
            place = next;
        }
    }
    __syncthreads();
    for (int64_t i = first; i < first + SORT_ITEMS && i < sort.rows; i++) {
        int32_t key = sort.keys[from][i];
        int32_t place = places[key >> shift & (SORT_DIGITS - 1)][threadIdx.x]++;

        sort.keys[1 - from][place] = key;
        sort.items[1 - from][place] = sort.items[from][i];
    }
}

/* A destination begins where the key passes it: between two rows, or at an end. */
__global__ static void sort_starts_kernel(struct row_sort sort, int from)
{
    KERNEL_FOR(i, sort.rows + 1)
    {
        int64_t before = i > 0 ? sort.keys[from][i - 1] : -1;
        int64_t after = i < sort.rows ? sort.keys[from][i] : sort.destinations;

        for (int64_t to = before + 1; to <= after; to++) {
            sort.starts[to] = (int32_t)i;
        }
    }
}

/* Sorts the rows by INDEX, of which each is below `destinations`; negative: none. */
static inline void sort_rows(struct row_sort *sort, const int32_t *index)
{
    unsigned tiles = (unsigned)sort_tiles(sort);
    int from = 0;

    LAUNCH_ITEMS(sort_start_kernel, sort->rows, *sort, index);
    for (int shift = 0; sort->destinations >> shift; shift += SORT_DIGIT_BITS) {
        LAUNCH(sort_count_kernel, tiles, KERNEL_THREADS, 0, 0, *sort, from, shift);
        scan_run(&sort->counts);
        LAUNCH(sort_place_kernel, tiles, KERNEL_THREADS, 0, 0, *sort, from, shift);
        from = 1 - from;
    }
    LAUNCH_ITEMS(sort_starts_kernel, sort->rows + 1, *sort, from);
    sort->sorted = sort->items[from];
}

#endif
