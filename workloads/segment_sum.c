/* Sums of the rows of a segment: sums[s,c] = sum over rows r with ids[r] == s of
 * data[r,c].  Every fourth segment also has rows that are 2^36 times larger and cancel in
 * pairs: there the order shows even when sums are kept in float64. */
#include "workloads/segment_sum.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/shared/scatter.h"
#include "workloads/workload.h"

struct segment_sum {
    struct scatter scatter;
    double *wide_sums; /* [segments][width] */
};

static void compute_unordered(struct run *run)
{
    const struct segment_sum *segment = run->state;

#pragma omp parallel num_threads(run->threads)
    {
        scatter_clear(&segment->scatter);
        scatter_add_atomically(&segment->scatter);
    }
}

static void compute_ordered(struct run *run)
{
    const struct segment_sum *segment = run->state;

#pragma omp parallel num_threads(run->threads)
    {
        scatter_sort(&segment->scatter);
        scatter_add_in_order(&segment->scatter);
    }
}

static void task_add_widely(const struct segment_sum *segment, int64_t task)
{
    const struct scatter *scatter = &segment->scatter;

    for (int64_t i = 0; i < SCATTER_TASK_ROWS; i++) {
        int64_t row =
            task * SCATTER_TASK_ROWS + (task % 2 ? SCATTER_TASK_ROWS - 1 - i : i);
        double *to = segment->wide_sums + scatter->index[row] * scatter->width;
        const float *from = scatter_row(scatter, row);

        for (int64_t c = 0; c < scatter->width; c++) {
#pragma omp atomic
            to[c] += (double)from[c];
        }
    }
}

static void compute_float64(struct run *run)
{
    const struct segment_sum *segment = run->state;
    const struct scatter *scatter = &segment->scatter;
    int64_t elements = scatter->destinations * scatter->width;

    memset(segment->wide_sums, 0, (size_t)elements * sizeof(double));
#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for schedule(dynamic, 1)
        for (int64_t task = 0; task < scatter->rows / SCATTER_TASK_ROWS; task++) {
            task_add_widely(segment, task);
        }
#pragma omp for
        for (int64_t i = 0; i < elements; i++) {
            scatter->sums[i] = (float)segment->wide_sums[i];
        }
    }
}

static void setup(struct run *run)
{
    const struct segment_shape *shape = run->size->params;
    struct segment_sum *segment = run_host_alloc(sizeof *segment);
    int64_t data_shape[] = { shape->rows, shape->width };
    int64_t sums_shape[] = { shape->segments, shape->width };
    int32_t *ids = run_host_alloc((size_t)shape->rows * sizeof *ids);
    float *data = run_host_alloc((size_t)(shape->rows * shape->width) * sizeof *data);

#pragma omp parallel for num_threads(run->threads)
    for (int64_t r = 0; r < shape->rows; r++) {
        segment_row_fill(run, shape, r, ids, data);
    }
    segment->scatter = (struct scatter){
        .rows = shape->rows,
        .width = shape->width,
        .destinations = shape->segments,
        .share = 1,
    };
    segment->scatter.index = run_values_i32(run, "ids", 1, data_shape, ids);
    segment->scatter.values = run_values_f32(run, "data", 2, data_shape, data);
    segment->scatter.sums = run_output_f32(run, "sums", 2, sums_shape);
    scatter_init(run, &segment->scatter);
    segment->wide_sums =
        run_alloc(run, (size_t)(shape->segments * shape->width) * sizeof(double));
    run->state = segment;
    free(data);
    free(ids);
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    scatter_reference(run, &inputs[0], NULL, &inputs[1], output, ret_expected, ret_bound);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "every element is added to its segment with an atomic add",
      .models = "TensorFlow's segment reductions on GPU before TF 2.7: atomicAdd",
      .algorithm = "atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "rows sorted by segment, stably; each segment has one owner",
      .models = "TensorFlow PR 51861: sort, then reduce each segment in order",
      .algorithm = "counting sort, segments in order of rows",
      .compute = compute_ordered },
    { .name = "float64",
      .summary = "atomic adds in float64, rounded to float32 at the end",
      .models = "the patch for TF 1.14 to 2.6 that casts to float64: fewer differences, "
                "no guarantee",
      .algorithm = "atomic adds in float64",
      .control = true,
      .compute = compute_float64 },
};

/* Rows are a multiple of SCATTER_TASK_ROWS. */
static const struct workload_size sizes[] = {
    { "small", "data[131072,16] ids[131072] sums[256,16]",
      &(const struct segment_shape){ 131072, 16, 256 } },
    { "medium", "data[262144,32] ids[262144] sums[1024,32]",
      &(const struct segment_shape){ 262144, 32, 1024 } },
    { "large", "data[4194304,64] ids[4194304] sums[4096,64]",
      &(const struct segment_shape){ 4194304, 64, 4096 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_ISSUE(39751, "unsorted_segment_sum uses atomics on GPU", "open 2023-07",
                     "TF 2.7"),
    TENSORFLOW_PR(47772,
                  "segment reductions raise when determinism is asked for, since TF 2.5",
                  "merged 2023-07", NULL),
    TENSORFLOW_PR(51861, "deterministic segment reductions, by sorting", "merged 2023-07",
                  "TF 2.7"),
    TENSORFLOW_PR(51392, "the same change, as first proposed", "closed 2023-07",
                  "TF 2.7"),
    TENSORFLOW_PR(47749, "why accumulating in float64 is no solution", "closed 2023-07",
                  NULL),
    GITHUB_ISSUE("framework-reproducibility", "NVIDIA/framework-reproducibility", 31,
                 "unsorted_segment_sum and its patch", NULL, NULL),
    TENSORFLOW_ISSUE(54276, "no deterministic unsorted segment sums on Windows",
                     "open 2023-07", NULL),
};

static const struct workload segment_sum = {
    .name = "segment_sum",
    .version = 1,
    .title = "tf.math.segment_sum and tf.math.unsorted_segment_*",
    .summary = "rows added up by segment, many rows to a segment",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of the segments' sums",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(segment_sum);
