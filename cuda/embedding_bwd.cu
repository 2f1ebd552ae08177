/* Gradient of an embedding bag; workloads/embedding_bwd.c defines the operation.
 * `ordered` adds in the CPU's order, so it has the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/scatter.h"
#include "workloads/embedding_bwd.h"

static void setup(struct run *run)
{
    struct scatter_gpu *scatter = (struct scatter_gpu *)run_host_alloc(sizeof *scatter);

    embedding_bwd_tensors(run, scatter);
    scatter_init(run, scatter);
    run->state = scatter;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "a bag adds its gradient to each of its entries with atomicAdd",
      .algorithm = "atomicAdd",
      .control = true,
      .compute = scatter_compute_unordered },
    { .name = "ordered",
      .summary = "ids sorted, stably; each element has one owner",
      .algorithm = "counting sort, entries in order of bags",
      .compute = scatter_compute_ordered },
};

CUDA_TWIN(embedding_bwd, 1, variants, setup);
