/* The health of a tensor as TensorFlow's debugger sums it up (mode FULL_HEALTH): how many
 * of its elements are -inf, +inf, NaN, negative, zero and positive.
 *
 * The GPU kernel counts in floating point: each thread its own elements, then adds its
 * six counts to six float32 sums, atomically.  Up to 2^24 whole numbers add exactly, in
 * any order; beyond, sums are rounded, and the order shows.  So the tensor here has more
 * positive elements than that.  It is x, tiled, so that it stays in the cache. */
#include "workloads/debug_numeric_summary.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

static const float largest = 0x1.fffffep127F;
static const double last_exact = 0x1p24; /* float32 has every whole number up to it */

struct summary {
    const struct summary_shape *shape;
    const float *x;
    float *counts;  /* [SUMMARY_KINDS] */
    int64_t *parts; /* [tiles][SUMMARY_KINDS] */
};

static void block_count(const float *x, int32_t counts[SUMMARY_KINDS])
{
    int32_t below = 0, above = 0, nans = 0, negative = 0, zeros = 0, positive = 0;

    for (int i = 0; i < SUMMARY_BLOCK; i++) {
        below += x[i] < -largest;
        above += x[i] > largest;
        nans += x[i] != x[i];
        negative += x[i] < 0;
        zeros += x[i] == 0;
        positive += x[i] > 0;
    }
    counts[0] = below;
    counts[1] = above;
    counts[2] = nans;
    counts[3] = negative - below;
    counts[4] = zeros;
    counts[5] = positive - above;
}

static int64_t task_count(const struct summary *summary)
{
    return summary->shape->tiles * summary->shape->elements /
           (SUMMARY_BLOCK * SUMMARY_TASK_BLOCKS);
}

static const float *task_block(const struct summary *summary, int64_t task, int block)
{
    return summary->x + (task * SUMMARY_TASK_BLOCKS + block) * SUMMARY_BLOCK %
                            summary->shape->elements;
}

static void compute_unordered(struct run *run)
{
    const struct summary *summary = run->state;

    memset(summary->counts, 0, SUMMARY_KINDS * sizeof(float));
#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t task = 0; task < task_count(summary); task++) {
        for (int block = 0; block < SUMMARY_TASK_BLOCKS; block++) {
            int32_t counts[SUMMARY_KINDS];

            block_count(task_block(summary, task, block), counts);
            for (int kind = 0; kind < SUMMARY_KINDS; kind++) {
#pragma omp atomic
                summary->counts[kind] += (float)counts[kind];
            }
        }
    }
}

/* Whole numbers are exact in float64 up to 2^53: no order can show. */
static void compute_float64(struct run *run)
{
    const struct summary *summary = run->state;
    double sums[SUMMARY_KINDS] = { 0 };

#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t task = 0; task < task_count(summary); task++) {
        for (int block = 0; block < SUMMARY_TASK_BLOCKS; block++) {
            int32_t counts[SUMMARY_KINDS];

            block_count(task_block(summary, task, block), counts);
            for (int kind = 0; kind < SUMMARY_KINDS; kind++) {
#pragma omp atomic
                sums[kind] += counts[kind];
            }
        }
    }
    for (int kind = 0; kind < SUMMARY_KINDS; kind++) {
        summary->counts[kind] = (float)sums[kind];
    }
}

static void tile_count(const struct summary *summary, int64_t *part)
{
    memset(part, 0, SUMMARY_KINDS * sizeof *part);
    for (int64_t at = 0; at < summary->shape->elements; at += SUMMARY_BLOCK) {
        int32_t counts[SUMMARY_KINDS];

        block_count(summary->x + at, counts);
        for (int kind = 0; kind < SUMMARY_KINDS; kind++) {
            part[kind] += counts[kind];
        }
    }
}

static void compute_ordered(struct run *run)
{
    const struct summary *summary = run->state;

#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t tile = 0; tile < summary->shape->tiles; tile++) {
        tile_count(summary, summary->parts + tile * SUMMARY_KINDS);
    }
    for (int kind = 0; kind < SUMMARY_KINDS; kind++) {
        int64_t count = 0;

        for (int64_t tile = 0; tile < summary->shape->tiles; tile++) {
            count += summary->parts[tile * SUMMARY_KINDS + kind];
        }
        summary->counts[kind] = (float)count;
    }
}

static void setup(struct run *run)
{
    const struct summary_shape *shape = run->size->params;
    struct summary *summary = run_host_alloc(sizeof *summary);
    uint64_t kinds = philox_stream(run->seed, run->workload->name, "kinds");
    uint64_t values = philox_stream(run->seed, run->workload->name, "x");
    float *x = run_host_alloc((size_t)shape->elements * sizeof *x);

#pragma omp parallel for num_threads(run->threads)
    for (int64_t i = 0; i < shape->elements; i++) {
        x[i] = summary_element(run, kinds, values, (uint64_t)i);
    }
    summary->shape = shape;
    summary->x = run_values_f32(run, "x", 1, &shape->elements, x);
    summary->counts = run_output_f32(run, "counts", 1, &(const int64_t){ SUMMARY_KINDS });
    summary->parts =
        run_alloc(run, (size_t)shape->tiles * SUMMARY_KINDS * sizeof *summary->parts);
    run->state = summary;
    free(x);
}

static int element_kind(double value)
{
    if (isinf(value)) {
        return value > 0;
    }
    if (isnan(value)) {
        return 2;
    }
    return value < 0 ? 3 : value > 0 ? 5 : 4;
}

/* What is exact has no tolerance.  Beyond, `unordered` adds a count a block, the others
 * round once. */
static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const struct summary_shape *shape = run->size->params;
    const float *x = inputs[0].data;
    int64_t adds =
        run->variant->control ? shape->tiles * shape->elements / SUMMARY_BLOCK : 1;

    (void)output;
    for (int kind = 0; kind < SUMMARY_KINDS; kind++) {
        ret_expected[kind] = 0;
    }
    for (int64_t i = 0; i < shape->elements; i++) {
        ret_expected[element_kind(x[i])] += (double)shape->tiles;
    }
    for (int kind = 0; kind < SUMMARY_KINDS; kind++) {
        ret_bound[kind] = ret_expected[kind] <= last_exact
                              ? 0
                              : rounding_gamma(run->dtype, adds) * ret_expected[kind];
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "every 256 elements' counts are added with atomic adds in float32",
      .models = "DebugNumericSummaryV2 on GPU in modes 3 and 4: atomicAdd of counts",
      .algorithm = "counts of 256, atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "whole numbers, rounded to float32 once",
      .models = "nothing in the documents: TensorFlow raises an error instead",
      .algorithm = "integer counts",
      .compute = compute_ordered },
    { .name = "float64",
      .summary = "the same atomic adds in float64, rounded to float32 at the end",
      .models = "DebugNumericSummaryV2 with output_dtype float64: exact in any order",
      .algorithm = "counts of 256, atomic adds in float64",
      .compute = compute_float64 },
};

static const struct workload_size sizes[] = {
    { "small", "x[524288] tiled 48 times, counts[6]",
      &(const struct summary_shape){ 524288, 48 } },
    { "medium", "x[1048576] tiled 128 times, counts[6]",
      &(const struct summary_shape){ 1048576, 128 } },
    { "large", "x[16777216] tiled 64 times, counts[6]",
      &(const struct summary_shape){ 16777216, 64 } },
};

static const struct workload_reference references[] = {
    STATUS_2023("debug numeric summary", "debug-numeric-summary",
                "CONCISE_HEALTH and FULL_HEALTH may vary on GPU; run them on the CPU",
                NULL),
    TENSORFLOW_COMMIT(5a51fa12, e54fd61ca7520fa82ad0cdd1c14591ee,
                      "modes 3 and 4 raise when determinism is asked for, since TF 2.7",
                      "merged 2023-07", NULL),
};

static const struct workload debug_numeric_summary = {
    .name = "debug_numeric_summary",
    .version = 1,
    .title = "tf.raw_ops.DebugNumericSummaryV2",
    .summary = "how many elements are infinite, NaN, negative, zero and positive",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of the counts",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(debug_numeric_summary);
