/* Read of memory that nobody wrote; workloads/uninitialized_read.c defines the operation.
 * Integers add exactly, so what is cleared has the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "workloads/uninitialized_read.h"

__global__ static void count_kernel(struct uninitialized_read histogram)
{
    KERNEL_FOR(i, histogram.values)
    {
        /* unsigned: a filled bin wraps around */
        atomicAdd((unsigned *)&histogram.counts[histogram.bin[i]], 1u);
    }
}

static void values_count(const struct uninitialized_read *histogram)
{
    LAUNCH_ITEMS(count_kernel, histogram->values, *histogram);
}

static void bins_clear(const struct uninitialized_read *histogram, int64_t bins)
{
    CUDA_TRY(cudaMemsetAsync(histogram->counts, 0, (size_t)bins * sizeof(int32_t)));
}

static void whole_blocks_clear(const struct uninitialized_read *histogram)
{
    bins_clear(histogram, histogram->bins / UNINITIALIZED_BLOCK * UNINITIALIZED_BLOCK);
}

static void compute_uncleared(struct run *run)
{
    const struct uninitialized_read *histogram =
        (const struct uninitialized_read *)run->state;

    whole_blocks_clear(histogram);
    values_count(histogram);
}

static void compute_cleared(struct run *run)
{
    const struct uninitialized_read *histogram =
        (const struct uninitialized_read *)run->state;

    bins_clear(histogram, histogram->bins);
    values_count(histogram);
}

__global__ static void fill_kernel(struct uninitialized_read histogram)
{
    KERNEL_FOR(b, histogram.bins)
    {
        histogram.counts[b] = INT32_MAX;
    }
}

static void compute_filled(struct run *run)
{
    const struct uninitialized_read *histogram =
        (const struct uninitialized_read *)run->state;

    LAUNCH_ITEMS(fill_kernel, histogram->bins, *histogram);
    whole_blocks_clear(histogram);
    values_count(histogram);
}

static const struct workload_variant variants[] = {
    { .name = "uncleared",
      .algorithm = "atomic adds to memory not cleared",
      .control = true,
      .compute = compute_uncleared },
    { .name = "cleared",
      .algorithm = "atomic adds to cleared memory",
      .compute = compute_cleared },
    { .name = "filled",
      .algorithm = "atomic adds to filled memory",
      .compute = compute_filled },
};

CUDA_TWIN(uninitialized_read, 1, variants, NULL);
