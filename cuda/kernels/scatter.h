/* Rows added to the destinations that an index names, with duplicates: the twin of
 * workloads/shared/scatter.h.  Atomic adds in whatever order they happen, or a stable
 * sort of the rows by destination, after which each element has one owner who adds its
 * rows in order: the order, and so the bits, of the CPU's. */
#ifndef CUDA_KERNELS_SCATTER_H
#define CUDA_KERNELS_SCATTER_H

#include "cuda/kernels/kernel.h"
#include "cuda/kernels/sort.h"
#include "workloads/shared/scatter_rows.h"

enum { SCATTER_AHEAD = 16 /* rows that an owner reads before it adds them */ };

struct scatter_gpu : scatter {
    struct row_sort sort;
};

/* Takes the scratch memory; everything of struct scatter is filled in. */
static inline void scatter_init(struct run *run, struct scatter_gpu *scatter)
{
    scatter->sort.rows = scatter->rows;
    scatter->sort.destinations = scatter->destinations;
    sort_init(run, &scatter->sort);
}

__device__ static inline float scatter_value(const struct scatter *scatter, int64_t row,
                                             int64_t column)
{
    int64_t from = scatter->picked ? scatter->picked[row] : row / scatter->share;

    return scatter->values[from * scatter->width + column];
}

__global__ static void scatter_atomic_kernel(struct scatter scatter)
{
    KERNEL_FOR(i, scatter.rows * scatter.width)
    {
        int64_t row = i / scatter.width, column = i % scatter.width;
        int64_t to = scatter.index[row];

        if (to >= 0) {
            atomicAdd(&scatter.sums[to * scatter.width + column],
                      scatter_value(&scatter, row, column));
        }
    }
}

/* Adds to zeros. */
static inline void scatter_add_atomically(const struct scatter *scatter)
{
    CUDA_TRY(cudaMemsetAsync(scatter->sums, 0,
                             (size_t)(scatter->destinations * scatter->width) *
                                 sizeof(float)));
    LAUNCH_ITEMS(scatter_atomic_kernel, scatter->rows * scatter->width, *scatter);
}

__global__ static void scatter_ordered_kernel(struct scatter_gpu scatter)
{
    KERNEL_FOR(i, scatter.destinations * scatter.width)
    {
        int64_t to = i / scatter.width, column = i % scatter.width;
        int64_t end = scatter.sort.starts[to + 1];
        float sum = 0; /* is never -0, so that zeros behind the end change nothing */

        for (int64_t at = scatter.sort.starts[to]; at < end; at += SCATTER_AHEAD) {
            float ahead[SCATTER_AHEAD];

            for (int k = 0; k < SCATTER_AHEAD; k++) {
                ahead[k] =
                    at + k < end
                        ? scatter_value(&scatter, scatter.sort.sorted[at + k], column)
                        : 0;
            }
            for (int k = 0; k < SCATTER_AHEAD; k++) {
                sum += ahead[k];
            }
        }
        scatter.sums[i] = sum;
    }
}

static inline void scatter_add_in_order(struct scatter_gpu *scatter)
{
    sort_rows(&scatter->sort, scatter->index);
    LAUNCH_ITEMS(scatter_ordered_kernel, scatter->destinations * scatter->width,
                 *scatter);
}

/* The two ways as variants of a workload whose state is a struct scatter_gpu. */
static inline void scatter_compute_unordered(struct run *run)
{
    scatter_add_atomically((const struct scatter *)run->state);
}

static inline void scatter_compute_ordered(struct run *run)
{
    scatter_add_in_order((struct scatter_gpu *)run->state);
}

#endif
