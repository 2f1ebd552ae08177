/* Gradients of a grey-scale dilation; workloads/dilation_bwd.c defines the operation.
 * `ordered` adds in the CPU's order, so it has the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/tree.h"
#include "cuda/kernels/window_max.h"
#include "workloads/dilation_bwd.h"

struct dilation_gpu : window_max {
    int64_t taps;    /* elements of the filter */
    float *dfilter;  /* [3][3][channels] */
    float *partials; /* [slots][3][3][channels] */
};

__global__ static void scatter_kernel(struct dilation_gpu dilation)
{
    int64_t channels = dilation.shape.channels;

    KERNEL_FOR(window, pool_elements(&dilation.shape))
    {
        int32_t winner = window_winner(&dilation, window);

        window_scatter(&dilation, window, winner);
        atomicAdd(&dilation.dfilter[winner * channels + window % channels],
                  dilation.dy[window]);
    }
}

static void compute_unordered(struct run *run)
{
    const struct dilation_gpu *dilation = (const struct dilation_gpu *)run->state;
    int64_t elements = pool_elements(&dilation->shape);

    CUDA_TRY(cudaMemsetAsync(dilation->dx, 0, (size_t)elements * sizeof(float)));
    CUDA_TRY(
        cudaMemsetAsync(dilation->dfilter, 0, (size_t)dilation->taps * sizeof(float)));
    LAUNCH_ITEMS(scatter_kernel, elements, *dilation);
}

/* An element of the filter over the windows of a slot, each a term or a zero. */
__global__ static void slot_kernel(struct dilation_gpu dilation)
{
    const struct pool_shape *shape = &dilation.shape;
    int64_t rows = shape->images * shape->height, channels = shape->channels;

    KERNEL_FOR(i, DILATION_SLOTS * dilation.taps)
    {
        int64_t slot = i / dilation.taps, tap = i % dilation.taps / channels;
        int64_t end = (slot + 1) * rows / DILATION_SLOTS * shape->width;
        float sum = 0;

        for (int64_t window = slot * rows / DILATION_SLOTS * shape->width; window < end;
             window++) {
            int64_t at = window * channels + i % channels;

            sum += dilation.winners[at] == tap ? dilation.dy[at] : 0.0f;
        }
        dilation.partials[i] = sum;
    }
}

__global__ static void join_kernel(struct dilation_gpu dilation)
{
    KERNEL_FOR(i, dilation.taps)
    {
        dilation.dfilter[i] =
            tree_sum_in_thread<DILATION_SLOTS>(dilation.partials + i, dilation.taps);
    }
}

static void compute_ordered(struct run *run)
{
    const struct dilation_gpu *dilation = (const struct dilation_gpu *)run->state;
    int64_t elements = pool_elements(&dilation->shape);

    LAUNCH_ITEMS(window_winners_kernel, elements, *dilation);
    LAUNCH_ITEMS(window_gather_kernel, elements, *dilation);
    LAUNCH_ITEMS(slot_kernel, DILATION_SLOTS * dilation->taps, *dilation);
    LAUNCH_ITEMS(join_kernel, dilation->taps, *dilation);
}

static void setup(struct run *run)
{
    struct dilation_gpu *dilation =
        (struct dilation_gpu *)run_host_alloc(sizeof *dilation);
    int64_t filter[] = { POOL_TAPS, POOL_TAPS, 0 };

    window_max_tensors(run, dilation);
    filter[2] = dilation->shape.channels;
    dilation->taps = POOL_WINDOW * filter[2];
    dilation->filter = run_input_f32(run, "filter", 3, filter, FILL_UNIFORM);
    dilation->dfilter = run_output_f32(run, "dfilter", 3, filter);
    dilation->winners = run_alloc_i32(run, pool_elements(&dilation->shape));
    dilation->partials = run_alloc_f32(run, DILATION_SLOTS * dilation->taps);
    run->state = dilation;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "each window adds its gradient to its maximum with atomicAdd",
      .algorithm = "scatter, atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .algorithm = "gather, row-major windows; filter: tree of 32 sums of rows",
      .compute = compute_ordered },
};

CUDA_TWIN(dilation_bwd, 1, variants, setup);
