/* The sign of a one-column SVD; workloads/svd_sign.c defines the operation.  Signs are
 * those of the CPU's, and so are all bits but the control's. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/tree.h"
#include "workloads/svd_sign.h"

__global__ static void atomic_kernel(struct svd_sign svd)
{
    KERNEL_FOR(i, svd.shape.columns * svd.shape.rows)
    {
        atomicAdd(&svd.v[i / svd.shape.rows], svd_term(&svd, i));
    }
}

static void compute_sum(struct run *run)
{
    const struct svd_sign *svd = (const struct svd_sign *)run->state;

    CUDA_TRY(cudaMemsetAsync(svd->v, 0, (size_t)svd->shape.columns * sizeof(float)));
    LAUNCH_ITEMS(atomic_kernel, svd->shape.columns * svd->shape.rows, *svd);
}

__global__ static void sign_kernel(struct svd_sign svd)
{
    KERNEL_FOR(c, svd.shape.columns)
    {
        svd.v[c] = svd_sign_of(svd.v[c]);
    }
}

static void compute_unordered(struct run *run)
{
    const struct svd_sign *svd = (const struct svd_sign *)run->state;

    compute_sum(run);
    LAUNCH_ITEMS(sign_kernel, svd->shape.columns, *svd);
}

__global__ static void slot_kernel(struct svd_sign svd)
{
    int64_t slot_rows = svd.shape.rows / SVD_SLOTS;

    KERNEL_FOR(slot, svd.shape.columns * SVD_SLOTS)
    {
        float sum = 0;

        for (int64_t i = slot * slot_rows; i < (slot + 1) * slot_rows; i++) {
            sum += svd_term(&svd, i);
        }
        svd.partials[slot] = sum;
    }
}

__global__ static void join_kernel(struct svd_sign svd)
{
    KERNEL_FOR(c, svd.shape.columns)
    {
        svd.v[c] =
            svd_sign_of(tree_sum_in_thread<SVD_SLOTS>(svd.partials + c * SVD_SLOTS, 1));
    }
}

static void compute_ordered(struct run *run)
{
    const struct svd_sign *svd = (const struct svd_sign *)run->state;

    LAUNCH_ITEMS(slot_kernel, svd->shape.columns * SVD_SLOTS, *svd);
    LAUNCH_ITEMS(join_kernel, svd->shape.columns, *svd);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .algorithm = "atomic adds, sign",
      .compute = compute_unordered },
    { .name = "sum",
      .algorithm = "atomic adds",
      .control = true,
      .compute = compute_sum },
    { .name = "ordered",
      .algorithm = "tree of 32 sums, sign",
      .compute = compute_ordered },
};

CUDA_TWIN(svd_sign, 1, variants, NULL);
