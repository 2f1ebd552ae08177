/* Weighted histogram: sums[b] = sum over i with bins[i] == b of weights[i]. */
#include "workloads/bincount.h"

#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/rounding.h"
#include "workloads/shared/tree.h"
#include "workloads/workload.h"

enum { TASK = 4096 };

struct bincount {
    int64_t values, bins;
    const int32_t *bin;
    const float *weights;
    float *sums;
    float *parts; /* [BINCOUNT_SLOTS][bins] */
};

static void compute_unordered(struct run *run)
{
    const struct bincount *count = run->state;

    memset(count->sums, 0, (size_t)count->bins * sizeof(float));
#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t task = 0; task < count->values / TASK; task++) {
        for (int64_t i = task * TASK; i < (task + 1) * TASK; i++) {
#pragma omp atomic
            count->sums[count->bin[i]] += count->weights[i];
        }
    }
}

static void compute_ordered(struct run *run)
{
    const struct bincount *count = run->state;

#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for
        for (int64_t slot = 0; slot < BINCOUNT_SLOTS; slot++) {
            float *part = count->parts + slot * count->bins;

            memset(part, 0, (size_t)count->bins * sizeof(float));
            for (int64_t i = slot * count->values / BINCOUNT_SLOTS;
                 i < (slot + 1) * count->values / BINCOUNT_SLOTS; i++) {
                part[count->bin[i]] += count->weights[i];
            }
        }
        tree_join(count->sums, count->bins, count->parts, BINCOUNT_SLOTS, count->bins);
    }
}

static void setup(struct run *run)
{
    const struct bincount_shape *shape = run->size->params;
    struct bincount *count = run_host_alloc(sizeof *count);
    const int64_t *values = &shape->values;

    count->values = shape->values;
    count->bins = shape->bins;
    count->bin = run_input_i32(run, "bins", 1, values, shape->bins);
    count->weights = run_input_f32(run, "weights", 1, values, FILL_WIDE);
    count->sums = run_output_f32(run, "sums", 1, &shape->bins);
    count->parts = run_alloc_f32(run, BINCOUNT_SLOTS * shape->bins);
    run->state = count;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const int32_t *bins = inputs[0].data;
    const float *weights = inputs[1].data;
    struct exact_sums exact = sums_begin_counted(run, output, ret_expected, ret_bound);

    for (int64_t i = 0; i < tensor_elements(&inputs[0]); i++) {
        sums_add(&exact, bins[i], weights[i]);
    }
    sums_finish(&exact, 0);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "every weight is added to its bin with an atomic add",
      .models = "tf.math.bincount and torch.bincount with weights on GPU: atomicAdd",
      .algorithm = "atomic adds",
      .control = true,
      .compute = compute_unordered },
    { .name = "ordered",
      .summary = "32 fixed parts of the values, each with bins of its own, and a tree",
      .models = "nothing in the documents: the frameworks raise an error instead",
      .algorithm = "32 slots, fixed tree",
      .compute = compute_ordered },
};

static const struct workload_size sizes[] = {
    { "small", "weights[2097152] bins[2097152] sums[1024]",
      &(const struct bincount_shape){ 2097152, 1024 } },
    { "medium", "weights[8388608] bins[8388608] sums[4096]",
      &(const struct bincount_shape){ 8388608, 4096 } },
    { "large", "weights[67108864] bins[67108864] sums[16384]",
      &(const struct bincount_shape){ 67108864, 16384 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_COMMIT(f0e6c2ff, 82d9892861572dd0802ff926a99b6320,
                      "bincount raises when determinism is asked for, since TF 2.7",
                      "merged 2023-07", NULL),
    PYTORCH_ALGORITHMS("bincount with weights on CUDA raises: no deterministic kernel"),
};

static const struct workload bincount = {
    .name = "bincount",
    .version = 1,
    .title = "tf.math.bincount",
    .summary = "histogram with weights",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of the bins",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(bincount);
