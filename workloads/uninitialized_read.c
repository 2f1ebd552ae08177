/* A histogram whose clearing loop forgets the last bins: counts[b] = how often b occurs.
 * The adds are atomic and of integers, so no order shows: what shows is the memory that
 * was there before.  The worker poisons outputs with a pattern that differs between
 * iterations and between processes; a program gets whatever the allocator hands out. */
#include "workloads/uninitialized_read.h"

#include <string.h>

#include "workloads/shared/references.h"
#include "workloads/workload.h"

static void values_count(const struct run *run)
{
    const struct uninitialized_read *histogram = run->state;

#pragma omp parallel for num_threads(run->threads)
    for (int64_t i = 0; i < histogram->values; i++) {
        __atomic_fetch_add(&histogram->counts[histogram->bin[i]], 1, __ATOMIC_RELAXED);
    }
}

static void whole_blocks_clear(const struct uninitialized_read *histogram)
{
    for (int64_t block = 0; block < histogram->bins / UNINITIALIZED_BLOCK; block++) {
        memset(histogram->counts + block * UNINITIALIZED_BLOCK, 0,
               UNINITIALIZED_BLOCK * sizeof(int32_t));
    }
}

static void compute_uncleared(struct run *run)
{
    whole_blocks_clear(run->state);
    values_count(run);
}

static void compute_cleared(struct run *run)
{
    const struct uninitialized_read *histogram = run->state;

    memset(histogram->counts, 0, (size_t)histogram->bins * sizeof(int32_t));
    values_count(run);
}

static void compute_filled(struct run *run)
{
    const struct uninitialized_read *histogram = run->state;

    for (int64_t b = 0; b < histogram->bins; b++) {
        histogram->counts[b] = INT32_MAX;
    }
    whole_blocks_clear(histogram);
    values_count(run);
}

static void setup(struct run *run)
{
    const struct histogram_shape *shape = run->size->params;
    struct uninitialized_read *histogram = run_host_alloc(sizeof *histogram);

    histogram->values = shape->values;
    histogram->bins = shape->bins;
    histogram->bin = run_input_i32(run, "bins", 1, &shape->values, shape->bins);
    histogram->counts = run_output(run, "counts", DTYPE_INT32, 1, &shape->bins)->data;
    run->state = histogram;
}

/* Exact, except the bins that a variant does not clear: these may have any value. */
static void reference(const struct run *run, const struct tensor *inputs,
                      const struct tensor *output, double *ret_expected,
                      double *ret_bound)
{
    const int32_t *bins = inputs[0].data;
    int64_t count = tensor_elements(output);
    bool clears = strcmp(run->variant->name, "cleared") == 0;

    for (int64_t b = 0; b < count; b++) {
        ret_expected[b] = 0;
        ret_bound[b] =
            clears || b < count / UNINITIALIZED_BLOCK * UNINITIALIZED_BLOCK ? 0 : 0x1p33;
    }
    for (int64_t i = 0; i < tensor_elements(&inputs[0]); i++) {
        ret_expected[bins[i]]++;
    }
}

static const struct workload_variant variants[] = {
    { .name = "uncleared",
      .summary = "the last bins are added to whatever was there",
      .models = "a kernel that reads memory nobody wrote",
      .algorithm = "atomic adds to memory not cleared",
      .control = true,
      .kind = "poison",
      .compute = compute_uncleared },
    { .name = "cleared",
      .summary = "every bin is cleared first",
      .models = "the remedy: clear what is read",
      .algorithm = "atomic adds to cleared memory",
      .compute = compute_cleared },
    { .name = "filled",
      .summary = "fresh memory is filled with the largest integer: repeatable, and wrong",
      .models = "torch.utils.deterministic.fill_uninitialized_memory, which hides the "
                "defect",
      .algorithm = "atomic adds to filled memory",
      .compute = compute_filled },
};

static const struct workload_size sizes[] = {
    { "small", "bins[65536] counts[1024]",
      &(const struct histogram_shape){ 65536, 1024 } },
    { "medium", "bins[1048576] counts[4096]",
      &(const struct histogram_shape){ 1048576, 4096 } },
    { "large", "bins[67108864] counts[65536]",
      &(const struct histogram_shape){ 67108864, 65536 } },
};

static const struct workload_reference references[] = {
    { .kind = "documentation",
      .id = "pytorch torch.utils.deterministic.fill_uninitialized_memory",
      .title = "fills fresh memory while deterministic algorithms are asked for",
      .url = "https://docs.pytorch.org/docs/stable/deterministic.html",
      .solved = NULL },
    GITHUB_ISSUE("pytorch", "pytorch/pytorch", 193317,
                 "what deterministic mode mended may have been an uninitialised read",
                 NULL, NULL),
    TENSORFLOW_ISSUE(41280, "gradients past a sequence's length are not written", NULL,
                     NULL),
};

static const struct workload uninitialized_read = {
    .name = "uninitialized_read",
    .version = 1,
    .title = "Read of memory that nobody wrote",
    .summary = "a histogram whose last bins are not cleared",
    WORKLOAD_VARIANTS(variants),
    WORKLOAD_SIZES(sizes),
    WORKLOAD_DTYPES(DTYPE_INT32),
    .weight_sum = "sum of the counts",
    WORKLOAD_REFERENCES(references),
    .setup = setup,
    .reference = reference,
};
WORKLOAD_REGISTER(uninitialized_read);
