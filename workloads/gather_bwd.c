/* Gradient of tf.gather with respect to what is gathered from: dparams[v,c] = sum over i
 * with indices[i] == v of dy[i,c].  Every index is repeated many times: two terms alone
 * add up to the same in either order. */
#include "workloads/gather_bwd.h"

#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/shared/scatter.h"
#include "workloads/workload.h"

enum { OWNED_ENTRIES = 8 /* rows of dparams in a task of the matrix product */ };

/* Rows [FIRST, FIRST + OWNED_ENTRIES) of transpose(one_hot(indices)) * dy, zeros and
 * all. */
static void entries_multiply(const struct scatter *scatter, int64_t first)
{
    int64_t width = scatter->width;
    float *sums = scatter->sums + first * width;

    memset(sums, 0, (size_t)(OWNED_ENTRIES * width) * sizeof(float));
    for (int64_t row = 0; row < scatter->rows; row++) {
        for (int64_t entry = 0; entry < OWNED_ENTRIES; entry++) {
            float one_hot = scatter->index[row] == first + entry ? 1.0F : 0.0F;
            const float *from = scatter_row(scatter, row);

#pragma omp simd
            for (int64_t c = 0; c < width; c++) {
                sums[entry * width + c] += one_hot * from[c];
            }
        }
    }
}

static void compute_one_hot(struct run *run)
{
    const struct scatter *scatter = run->state;

#pragma omp parallel for num_threads(run->threads) schedule(dynamic, 1)
    for (int64_t first = 0; first < scatter->destinations; first += OWNED_ENTRIES) {
        entries_multiply(scatter, first);
    }
}

static void setup(struct run *run)
{
    struct scatter *scatter = run_host_alloc(sizeof *scatter);

    gather_bwd_tensors(run, scatter);
    scatter_init(run, scatter);
    run->state = scatter;
}

static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    scatter_reference(run, &inputs[0], NULL, &inputs[1], output, ret_expected, ret_bound);
}

static const struct workload_variant variants[] = {
    { .name = "unordered",
      .summary = "every element of dy is added to its entry with an atomic add",
      .models = "IndexedSlices made dense by unsorted_segment_sum on GPU: atomicAdd",
      .algorithm = "atomic adds",
      .control = true,
      .compute = scatter_compute_unordered },
    { .name = "ordered",
      .summary = "rows sorted by entry, stably; each entry has one owner",
      .models = "the segment reduction by sorting, selected by TF_DETERMINISTIC_OPS",
      .algorithm = "counting sort, entries in order of rows",
      .compute = scatter_compute_ordered },
    { .name = "one_hot",
      .summary = "matrix product with the one-hot rows of the indices",
      .models = "the work-around of the documents: one_hot(indices) @ params, not gather",
      .algorithm = "matrix product with one-hot rows",
      .compute = compute_one_hot },
};

static const struct workload_size sizes[] = {
    { "small", "dy[32768,64] indices[32768] dparams[32,64]",
      &(const struct gather_shape){ 32768, 64, 32 } },
    { "medium", "dy[131072,128] indices[131072] dparams[64,128]",
      &(const struct gather_shape){ 131072, 128, 64 } },
    { "large", "dy[1048576,256] indices[1048576] dparams[256,256]",
      &(const struct gather_shape){ 1048576, 256, 256 } },
};

static const struct workload_reference references[] = {
    TENSORFLOW_PR(51861, "deterministic segment reductions, on which this gradient rests",
                  "merged 2023-07", "TF 2.7"),
    TENSORFLOW_PR(47772,
                  "segment reductions raise when determinism is asked for, since TF 2.5",
                  "merged 2023-07", NULL),
    TENSORFLOW_ISSUE(39751, "unsorted_segment_sum uses atomics on GPU", "open 2023-07",
                     "TF 2.7"),
    TENSORFLOW_ISSUE(40514, "BERT differs from run to run on GPU",
                     "open 2020-06, closed 2023-07", NULL),
    GITHUB_ISSUE("transformers", "huggingface/transformers", 5063,
                 "the same BERT; the documents print 5603", "open 2020-06", NULL),
};

static const struct workload gather_bwd = {
    .name = "gather_bwd",
    .version = 1,
    .title = "tf.gather backprop and dense IndexedSlices",
    .summary = "gradient of gather: rows added up by index, every index many times",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    .weight_sum = "sum of dparams",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(gather_bwd);
