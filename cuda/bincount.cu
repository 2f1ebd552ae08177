/* Weighted histogram; workloads/bincount.c defines the operation.  `ordered` adds in the
 * CPU's order, so it has the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/sort.h"
#include "cuda/kernels/tree.h"
#include "workloads/bincount.h"

enum { AHEAD = 8 /* weights that a lane reads before it adds them */ };

static_assert((int)BINCOUNT_SLOTS == (int)WARP_LANES, "a lane a slot");

struct bincount {
    int64_t values, bins;
    const int32_t *bin;
    const float *weights;
    float *sums;
    struct row_sort sort; /* of the values by bin */
};

__global__ static void atomic_kernel(struct bincount count)
{
    KERNEL_FOR(i, count.values)
    {
        atomicAdd(&count.sums[count.bin[i]], count.weights[i]);
    }
}

static void compute_unordered(struct run *run)
{
    const struct bincount *count = (const struct bincount *)run->state;

    CUDA_TRY(cudaMemsetAsync(count->sums, 0, (size_t)count->bins * sizeof(float)));
    LAUNCH_ITEMS(atomic_kernel, count->values, *count);
}

/* The first of the rows [AT, END) of `sorted` that is not before VALUE. */
__device__ static int64_t rows_before(const int32_t *sorted, int64_t at, int64_t end,
                                      int64_t value)
{
    while (at < end) {
        int64_t middle = (at + end) / 2;

        if (sorted[middle] < value) {
            at = middle + 1;
        } else {
            end = middle;
        }
    }
    return at;
}

/* The weights of rows [AT, END) of `sorted`, added in that order. */
__device__ static float rows_add(const struct bincount *count, int64_t at, int64_t end)
{
    float sum = 0; /* is never -0, so that zeros behind the end change nothing */

    for (; at < end; at += AHEAD) {
        float ahead[AHEAD];

        for (int k = 0; k < AHEAD; k++) {
            ahead[k] = at + k < end ? count->weights[count->sort.sorted[at + k]] : 0;
        }
        for (int k = 0; k < AHEAD; k++) {
            sum += ahead[k];
        }
    }
    return sum;
}

/* A warp a bin, a lane a slot: its values are neighbours among those of the bin. */
__global__ static void slots_kernel(struct bincount count)
{
    int64_t slot = threadIdx.x % WARP_LANES;

    for (int64_t bin = kernel_thread() / WARP_LANES; bin < count.bins;
         bin += kernel_threads() / WARP_LANES) {
        int32_t end = count.sort.starts[bin + 1], next;
        int32_t begin = (int32_t)rows_before(count.sort.sorted, count.sort.starts[bin],
                                             end, slot * count.values / BINCOUNT_SLOTS);
        float sum;

        next = __shfl_down_sync(ALL_LANES, begin, 1);
        sum = rows_add(&count, begin, slot == BINCOUNT_SLOTS - 1 ? end : next);
        sum = tree_sum_in_warp(sum, BINCOUNT_SLOTS);
        if (slot == 0) {
            count.sums[bin] = sum;
        }
    }
}

static void compute_ordered(struct run *run)
{
    struct bincount *count = (struct bincount *)run->state;

    sort_rows(&count->sort, count->bin);
    LAUNCH_ITEMS(slots_kernel, count->bins * WARP_LANES, *count);
}

static void setup(struct run *run)
{
    const struct bincount_shape *shape = (const struct bincount_shape *)run->size->params;
    struct bincount *count = (struct bincount *)run_host_alloc(sizeof *count);
    const int64_t *values = &shape->values;

    count->values = shape->values;
    count->bins = shape->bins;
    count->bin = run_input_i32(run, "bins", 1, values, shape->bins);
    count->weights = run_input_f32(run, "weights", 1, values, FILL_WIDE);
    count->sums = run_output_f32(run, "sums", 1, &shape->bins);
    count->sort.rows = shape->values;
    count->sort.destinations = shape->bins;
    sort_init(run, &count->sort);
    run->state = count;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "every weight is added to its bin with atomicAdd",
      .algorithm = "atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary =
          "values sorted by bin; 32 fixed parts of a bin's values, each with a lane of "
          "its own, and a tree",
      .algorithm = "32 slots, fixed tree",
      .compute = compute_ordered },
};

CUDA_TWIN(bincount, 1, variants, setup);
