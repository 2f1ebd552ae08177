/* Weighted histogram; workloads/bincount.c defines the operation.  `ordered` adds in the
 * order of the CPU's, so it has its bits. */
#include "cuda/kernel.h"
#include "workloads/bincount.h"
#include "workloads/tree.h"

enum {
    BATCH = 8, /* values that a lane reads ahead */
    STRETCH = BATCH * WARP_LANES
};

struct bincount {
    int64_t values, bins;
    const int32_t *bin;
    const float *weights;
    float *sums;
    float *parts; /* [BINCOUNT_SLOTS][bins] */
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

/* Adds the weights of a warp's lanes to their bins, in the order of lanes: the first lane
 * of a bin adds for all of that bin.  BIN is negative where a lane has nothing. */
__device__ static void add_in_lane_order(float *part, int32_t bin, const float *weights)
{
    unsigned same = __match_any_sync(ALL_LANES, bin);
    unsigned lane = threadIdx.x;

    if (bin >= 0 && (unsigned)__ffs((int)same) == lane + 1) {
        float sum = part[bin];

        for (; same; same &= same - 1)
            sum += weights[__ffs((int)same) - 1];
        part[bin] = sum;
    }
    __syncwarp();
}

/* One warp a slot, whose values it takes in order. */
__global__ static void slot_kernel(struct bincount count)
{
    __shared__ float weights[BATCH][WARP_LANES];
    int64_t slot = blockIdx.x;
    int64_t end = (slot + 1) * count.values / BINCOUNT_SLOTS;
    float *part = count.parts + slot * count.bins;

    for (int64_t begin = slot * count.values / BINCOUNT_SLOTS; begin < end;
         begin += STRETCH) {
        int32_t bins[BATCH];

        for (int step = 0; step < BATCH; step++) {
            int64_t i = begin + step * WARP_LANES + threadIdx.x;

            bins[step] = i < end ? count.bin[i] : -1;
            weights[step][threadIdx.x] = i < end ? count.weights[i] : 0;
        }
        __syncwarp();
        for (int step = 0; step < BATCH; step++)
            add_in_lane_order(part, bins[step], weights[step]);
    }
}

__global__ static void join_kernel(struct bincount count)
{
    KERNEL_FOR(bin, count.bins)
    {
        tree_sum(count.parts, BINCOUNT_SLOTS, count.bins, bin, bin + 1);
        count.sums[bin] = count.parts[bin];
    }
}

static void compute_ordered(struct run *run)
{
    const struct bincount *count = (const struct bincount *)run->state;

    CUDA_TRY(cudaMemsetAsync(count->parts, 0,
                             (size_t)(BINCOUNT_SLOTS * count->bins) * sizeof(float)));
    LAUNCH(slot_kernel, BINCOUNT_SLOTS, WARP_LANES, 0, 0, *count);
    LAUNCH_ITEMS(join_kernel, count->bins, *count);
}

static void setup(struct run *run)
{
    const struct bincount_shape *shape = (const struct bincount_shape *)run->size->params;
    struct bincount *count = (struct bincount *)run_host_alloc(sizeof(*count));
    const int64_t *values = &shape->values;

    count->values = shape->values;
    count->bins = shape->bins;
    count->bin = (const int32_t *)run_input(run, "bins", DTYPE_INT32, 1, values,
                                            FILL_INDEX, shape->bins)
                     ->data;
    count->weights =
        (const float *)run_input(run, "weights", run->dtype, 1, values, FILL_WIDE, 0)
            ->data;
    count->sums = (float *)run_output(run, "sums", run->dtype, 1, &shape->bins)->data;
    count->parts =
        (float *)run_alloc(run, (size_t)(BINCOUNT_SLOTS * shape->bins) * sizeof(float));
    run->state = count;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "every weight is added to its bin with atomicAdd",
      .models = "tf.math.bincount and torch.bincount with weights on GPU: atomicAdd",
      .algorithm = "atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary =
          "32 fixed parts of the values, each with a warp and bins of its own, and "
          "a tree",
      .models = "nothing in the documents: the frameworks raise an error instead",
      .algorithm = "32 slots, fixed tree",
      .compute = compute_ordered },
};

static const struct workload bincount_cuda = {
    .name = "bincount",
    .version = 1,
    .backend = "cuda",
    .variants = variants,
    .variant_count = COUNT_OF(variants),
    .setup = setup,
};
WORKLOAD_REGISTER(bincount_cuda);
