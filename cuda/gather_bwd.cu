/* Gradient of gather; workloads/gather_bwd.c defines the operation.  `ordered` and
 * `one_hot` add in the CPU's order, so they have the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/scatter.h"
#include "workloads/gather_bwd.h"

/* One element of transpose(one_hot(indices)) * dy, zeros and all. */
__global__ static void one_hot_kernel(struct scatter scatter)
{
    KERNEL_FOR(i, scatter.destinations * scatter.width)
    {
        int64_t entry = i / scatter.width;
        const float *column = scatter.values + i % scatter.width;
        float sum = 0;

        for (int64_t row = 0; row < scatter.rows; row++) {
            float one_hot = scatter.index[row] == entry ? 1.0f : 0.0f;

            sum += one_hot * column[row * scatter.width];
        }
        scatter.sums[i] = sum;
    }
}

static void compute_one_hot(struct run *run)
{
    const struct scatter *scatter = (const struct scatter *)run->state;

    LAUNCH_ITEMS(one_hot_kernel, scatter->destinations * scatter->width, *scatter);
}

static void setup(struct run *run)
{
    struct scatter_gpu *scatter = (struct scatter_gpu *)run_host_alloc(sizeof *scatter);

    gather_bwd_tensors(run, scatter);
    scatter_init(run, scatter);
    run->state = scatter;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "every element of dy is added to its entry with atomicAdd",
      .algorithm = "atomicAdd",
      .control = true,
      .compute = scatter_compute_unordered },
    { .name = "ordered",
      .summary = "rows sorted by entry, stably; each element has one owner",
      .algorithm = "counting sort, entries in order of rows",
      .compute = scatter_compute_ordered },
    { .name = "one_hot",
      .algorithm = "matrix product with one-hot rows",
      .compute = compute_one_hot },
};

CUDA_TWIN(gather_bwd, 1, variants, setup);
