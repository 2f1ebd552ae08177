/* Gradient of an embedding bag; workloads/embedding_bwd.c defines the operation.
 * `ordered` adds in the CPU's order, so it has the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/scatter.h"
#include "workloads/embedding_bwd.h"

#include <stdlib.h>

static void setup(struct run *run)
{
    const struct embedding_shape *shape =
        (const struct embedding_shape *)run->size->params;
    struct scatter *scatter = (struct scatter *)run_host_alloc(sizeof *scatter);
    int64_t ids_shape[] = { shape->bags, shape->length };
    int64_t dy_shape[] = { shape->bags, shape->width };
    int64_t table_shape[] = { shape->entries, shape->width };
    int32_t *ids =
        (int32_t *)run_host_alloc((size_t)(shape->bags * shape->length) * sizeof *ids);

    embedding_ids_fill(run, shape, ids);
    scatter->rows = shape->bags * shape->length;
    scatter->width = shape->width;
    scatter->destinations = shape->entries;
    scatter->share = shape->length;
    scatter->picked = NULL;
    scatter->index = run_values_i32(run, "ids", 2, ids_shape, ids);
    scatter->values = run_input_f32(run, "dy", 2, dy_shape, FILL_WIDE);
    scatter->sums = run_output_f32(run, "dtable", 2, table_shape);
    scatter_init(run, scatter);
    run->state = scatter;
    free(ids);
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
