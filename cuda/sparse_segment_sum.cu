/* Sums of picked rows by sorted segment; workloads/sparse_segment_sum.c defines the
 * operation.  `ordered` adds in the CPU's order, so it has the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/scatter.h"
#include "cuda/kernels/tree.h"
#include "workloads/sparse_segment_sum.h"

/* One block a segment: threadIdx.x is the column, threadIdx.y the lane. */
__global__ static void segment_kernel(struct scatter scatter)
{
    __shared__ float lanes[SPARSE_LANES * SPARSE_WIDTH_MAX];
    int64_t segment = blockIdx.x, column = threadIdx.x, lane = threadIdx.y;
    int64_t begin = sparse_segment_begin(scatter.index, scatter.rows, segment);
    int64_t end = sparse_segment_begin(scatter.index, scatter.rows, segment + 1);
    float sum = 0;

    for (int64_t row = begin + lane; row < end; row += SPARSE_LANES) {
        sum += scatter_value(&scatter, row, column);
    }
    lanes[lane * scatter.width + column] = sum;
    tree_sum_in_block(lanes + column, SPARSE_LANES, scatter.width, lane, SPARSE_LANES);
    if (lane == 0) {
        scatter.sums[segment * scatter.width + column] = lanes[column];
    }
}

static void compute_ordered(struct run *run)
{
    const struct scatter *scatter = (const struct scatter *)run->state;

    LAUNCH(segment_kernel, (unsigned)scatter->destinations,
           dim3((unsigned)scatter->width, SPARSE_LANES), 0, 0, *scatter);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "every picked row is added to its segment with atomicAdd",
      .algorithm = "atomicAdd",
      .control = true,
      .compute = scatter_compute_unordered },
    { .name = "ordered",
      .summary = "each segment has one block: 8 fixed lanes of rows, joined by a tree",
      .algorithm = "owner of a segment, 8 lanes, fixed tree",
      .compute = compute_ordered },
};

CUDA_TWIN(sparse_segment_sum, 1, variants, NULL);
