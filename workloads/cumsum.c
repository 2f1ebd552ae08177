/* Running sums: sums[i] = x[0] + … + x[i].  "Block" below is CUMSUM_BLOCK neighbouring
 * elements.
 *
 * The racing variant is the single-pass scan of Merrill and Garland (Single-pass Parallel
 * Prefix Scan with Decoupled Look-back, 2016) with the aggregates computed beforehand, so
 * that no task ever waits: each looks back over the aggregates of the blocks before it
 * until it meets one whose running sum is already known.  How far that is depends on how
 * far the other threads are, and so does the grouping of the additions. */
#include "workloads/cumsum.h"

#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/workload.h"

static float block_sum(const struct cumsum *cumsum, int64_t block)
{
    const float *x = cumsum->x + block * CUMSUM_BLOCK;
    float sum = x[0];

    for (int64_t i = 1; i < CUMSUM_BLOCK; i++) {
        sum += x[i];
    }
    return sum;
}

/* Writes the running sums of a block that BEFORE precedes. */
static void block_scan(const struct cumsum *cumsum, int64_t block, float before)
{
    float sum = 0;

    for (int64_t i = block * CUMSUM_BLOCK; i < (block + 1) * CUMSUM_BLOCK; i++) {
        sum += cumsum->x[i];
        cumsum->sums[i] = before + sum;
    }
}

static float look_back(const struct cumsum *cumsum, int64_t block)
{
    float sum = 0;

    while (block-- > 0) {
        int32_t known;

#pragma omp atomic read acquire
        known = cumsum->known[block];
        if (known) {
            return cumsum->prefixes[block] + sum;
        }
        sum = cumsum->aggregates[block] + sum;
    }
    return sum;
}

static void task_scan(const struct cumsum *cumsum, int64_t task)
{
    int64_t first = task * CUMSUM_TASK_BLOCKS;
    float before = look_back(cumsum, first);

    for (int64_t block = first; block < first + CUMSUM_TASK_BLOCKS; block++) {
        block_scan(cumsum, block, before);
        before += cumsum->aggregates[block];
        cumsum->prefixes[block] = before;
#pragma omp atomic write release
        cumsum->known[block] = 1;
    }
}

static void compute_unordered(struct run *run)
{
    const struct cumsum *cumsum = run->state;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for
        for (int64_t block = 0; block < cumsum->blocks; block++) {
            cumsum->aggregates[block] = block_sum(cumsum, block);
            cumsum->known[block] = 0;
        }
#pragma omp for schedule(dynamic, 1)
        for (int64_t task = 0; task < cumsum->blocks / CUMSUM_TASK_BLOCKS; task++) {
            task_scan(cumsum, task);
        }
    }
}

static void compute_ordered(struct run *run)
{
    const struct cumsum *cumsum = run->state;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for
        for (int64_t block = 0; block < cumsum->blocks; block++) {
            cumsum->aggregates[block] = block_sum(cumsum, block);
        }
#pragma omp single
        {
            float sum = 0;

            for (int64_t block = 0; block < cumsum->blocks; block++) {
                cumsum->prefixes[block] = sum += cumsum->aggregates[block];
            }
        }
#pragma omp for
        for (int64_t block = 0; block < cumsum->blocks; block++) {
            block_scan(cumsum, block, block ? cumsum->prefixes[block - 1] : 0);
        }
    }
}

static void setup(struct run *run)
{
    const struct cumsum_shape *shape = run->size->params;
    struct cumsum *cumsum = run_host_alloc(sizeof *cumsum);
    const int64_t *extent = &shape->elements;
    size_t blocks = (size_t)shape->elements / CUMSUM_BLOCK;

    cumsum->blocks = (int64_t)blocks;
    cumsum->x = run_input_f32(run, "x", 1, extent, FILL_WIDE);
    cumsum->sums = run_output_f32(run, "sums", 1, extent);
    cumsum->aggregates = run_alloc(run, blocks * sizeof(float));
    cumsum->prefixes = run_alloc(run, blocks * sizeof(float));
    cumsum->known = run_alloc(run, blocks * sizeof(int32_t));
    run->state = cumsum;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const float *x = inputs[0].data;
    double sum = 0, magnitudes = 0;

    for (int64_t i = 0; i < tensor_elements(output); i++) {
        sum += x[i];
        magnitudes += fabs((double)x[i]);
        ret_expected[i] = sum;
        ret_bound[i] = rounding_gamma(run->dtype, i + 1) * magnitudes;
    }
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "a task looks back until it meets a running sum already known",
      .models =
          "single-pass scans on GPU with decoupled look-back, as under torch.cumsum",
      .algorithm = "blocks of 256, look-back over what is known",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "sums of blocks, their running sums, then the elements",
      .models = "the scan in three passes: reduce, scan, add",
      .algorithm = "blocks of 256, three passes",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "x[4194304] sums[4194304]", &(const struct cumsum_shape){ 4194304 } },
    { "medium", "x[8388608] sums[8388608]", &(const struct cumsum_shape){ 8388608 } },
    { "large", "x[16777216] sums[16777216]", &(const struct cumsum_shape){ 16777216 } },
};

static const struct workload_reference references[] = {
    PYTORCH_ALGORITHMS(
        "cumsum of floating-point numbers on CUDA raises: no deterministic kernel"),
};

static const struct workload cumsum = {
    .name = "cumsum",
    .version = 1,
    .title = "torch.cumsum of floating-point numbers",
    .summary = "running sums of a vector",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of the running sums",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(cumsum);
