/* Sums of the rows of a segment; workloads/segment_sum.c defines the operation. `ordered`
 * adds in the CPU's order, so it has the CPU's bits. */
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/scatter.h"
#include "workloads/segment_sum.h"

#include <stdlib.h>

struct segment_sum {
    struct scatter_gpu scatter;
    double *wide_sums; /* [segments][width] */
};

static void compute_unordered(struct run *run)
{
    const struct segment_sum *segment = (const struct segment_sum *)run->state;

    scatter_add_atomically(&segment->scatter);
}

static void compute_ordered(struct run *run)
{
    struct segment_sum *segment = (struct segment_sum *)run->state;

    scatter_add_in_order(&segment->scatter);
}

__global__ static void wide_kernel(struct segment_sum segment)
{
    const struct scatter *scatter = &segment.scatter;

    KERNEL_FOR(i, scatter->rows * scatter->width)
    {
        int64_t row = i / scatter->width, column = i % scatter->width;

        atomicAdd(&segment.wide_sums[scatter->index[row] * scatter->width + column],
                  (double)scatter_value(scatter, row, column));
    }
}

__global__ static void narrow_kernel(struct segment_sum segment)
{
    KERNEL_FOR(i, segment.scatter.destinations * segment.scatter.width)
    {
        segment.scatter.sums[i] = (float)segment.wide_sums[i];
    }
}

static void compute_float64(struct run *run)
{
    const struct segment_sum *segment = (const struct segment_sum *)run->state;
    const struct scatter *scatter = &segment->scatter;
    int64_t elements = scatter->destinations * scatter->width;

    CUDA_TRY(cudaMemsetAsync(segment->wide_sums, 0, (size_t)elements * sizeof(double)));
    LAUNCH_ITEMS(wide_kernel, scatter->rows * scatter->width, *segment);
    LAUNCH_ITEMS(narrow_kernel, elements, *segment);
}

/* Made on the host, by all its processors: values do not depend on how many there are. */
static void make_inputs(struct run *run, const struct segment_shape *shape,
                        struct scatter *scatter)
{
    int64_t data_shape[] = { shape->rows, shape->width };
    int32_t *ids = (int32_t *)run_host_alloc((size_t)shape->rows * sizeof *ids);
    float *data =
        (float *)run_host_alloc((size_t)(shape->rows * shape->width) * sizeof *data);

#pragma omp parallel for
    for (int64_t r = 0; r < shape->rows; r++) {
        segment_row_fill(run, shape, r, ids, data);
    }
    scatter->index = run_values_i32(run, "ids", 1, data_shape, ids);
    scatter->values = run_values_f32(run, "data", 2, data_shape, data);
    free(data);
    free(ids);
}

static void setup(struct run *run)
{
    const struct segment_shape *shape = (const struct segment_shape *)run->size->params;
    struct segment_sum *segment = (struct segment_sum *)run_host_alloc(sizeof *segment);
    struct scatter_gpu *scatter = &segment->scatter;
    int64_t sums_shape[] = { shape->segments, shape->width };

    scatter->rows = shape->rows;
    scatter->width = shape->width;
    scatter->destinations = shape->segments;
    scatter->share = 1;
    scatter->picked = NULL;
    make_inputs(run, shape, scatter);
    scatter->sums = run_output_f32(run, "sums", 2, sums_shape);
    scatter_init(run, scatter);
    segment->wide_sums = (double *)run_alloc(
        run, (size_t)(shape->segments * shape->width) * sizeof(double));
    run->state = segment;
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "every element is added to its segment with atomicAdd",
      .algorithm = "atomicAdd",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "rows sorted by segment, stably; each element has one owner",
      .algorithm = "counting sort, segments in order of rows",
      .compute = compute_ordered },
    { .name = "float64",
      .summary = "atomicAdd in float64, rounded to float32 at the end",
      .algorithm = "atomicAdd in float64",
      .control = true,
      .compute = compute_float64 },
};

CUDA_TWIN(segment_sum, 1, variants, setup);
