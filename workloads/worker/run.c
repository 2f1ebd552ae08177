#include "workloads/worker/run.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/instruments/philox.h"
#include "workloads/worker/circumstances.h"
#include "workloads/worker/load.h"
#include "workloads/worker/probes.h"

/* How far jitter moves, and what fresh scratch is filled with. */
enum { JITTER_MAX = 64 << 10 };
static const uint32_t scratch_pattern = 0xa5a5a5a5u;

/* The most integers that FILL_INDEX may choose from: each must be exact in the dtype. */
static const uint64_t index_limits[DTYPE_COUNT] = {
    [DTYPE_FLOAT32] = 1ull << 24, [DTYPE_FLOAT64] = 1ull << 53,
    [DTYPE_FLOAT16] = 1ull << 11, [DTYPE_BFLOAT16] = 1ull << 8,
    [DTYPE_INT32] = 1ull << 31,   [DTYPE_INT64] = 1ull << 63,
    [DTYPE_UINT8] = 1ull << 8,
};

static bool is_float(enum dtype dtype)
{
    return dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT64 || dtype == DTYPE_FLOAT16 ||
           dtype == DTYPE_BFLOAT16;
}

/* The size of a tensor in bytes; ends the run when no machine could hold it. */
static size_t checked_bytes(struct run *run, const struct tensor *tensor)
{
    int64_t bytes = (int64_t)dtype_bytes(tensor->dtype);

    for (int i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] < 1) {
            run_defect(run, "tensor '%s' has extent %lld", tensor->name,
                       (long long)tensor->shape[i]);
        }
        if (__builtin_mul_overflow(bytes, tensor->shape[i], &bytes)) {
            run_out_of_memory(run, "tensor '%s' is larger than 2^63 bytes", tensor->name);
        }
    }
    return (size_t)bytes;
}

static void *allocate(struct run *run, const char *name, size_t bytes)
{
    static uint64_t count;
    const struct circumstances *now = circumstances_now();
    size_t before = circumstances_jitter(count++, run->backend->alignment, JITTER_MAX);
    size_t after = circumstances_jitter(count++, run->backend->alignment, JITTER_MAX);
    char *data =
        bytes < SIZE_MAX / 2 ? run->backend->allocate(run, before + bytes + after) : NULL;

    if (!data) {
        run_out_of_memory(run, "no %zu bytes of device memory for %s", bytes, name);
    }
    if (now->is_poisoned) {
        run->backend->poison(run, data, before + bytes + after, now->pattern);
    }
    return data + before;
}

static struct tensor *append(struct run *run, struct tensor *tensors, int *count,
                             struct tensor tensor, const int64_t *shape)
{
    if (*count == RUN_TENSORS_MAX) {
        run_defect(run, "more than %d tensors", RUN_TENSORS_MAX);
    }
    if (!tensor.name || tensor.rank < 0 || tensor.rank > TENSOR_RANK_MAX) {
        run_defect(run, "tensor %d has no name or rank %d", *count, tensor.rank);
    }
    for (int i = 0; i < *count; i++) {
        /* One name, one stream of values: two inputs would be equal unnoticed. */
        if (strcmp(tensors[i].name, tensor.name) == 0) {
            run_defect(run, "two tensors are named '%s'", tensor.name);
        }
    }
    if (tensor.rank > 0) {
        memcpy(tensor.shape, shape, (size_t)tensor.rank * sizeof *shape);
    }
    tensor.data = allocate(run, tensor.name, checked_bytes(run, &tensor));
    tensors[*count] = tensor;
    return &tensors[(*count)++];
}

static void check_filling(struct run *run, const char *name, enum dtype dtype,
                          const struct filling *filling)
{
    if (filling->fill != FILL_INDEX && !is_float(dtype)) {
        run_defect(run, "input '%s' of %s can only be filled with FILL_INDEX", name,
                   dtype_name(dtype));
    }
    if (filling->fill == FILL_INDEX &&
        (filling->limit < 1 || filling->limit > index_limits[dtype])) {
        run_defect(run, "input '%s': limit %lld is not in 1 .. %llu for %s", name,
                   (long long)filling->limit, (unsigned long long)index_limits[dtype],
                   dtype_name(dtype));
    }
}

struct tensor *run_input(struct run *run, const char *name, enum dtype dtype, int rank,
                         const int64_t *shape, enum fill fill, int64_t limit)
{
    struct tensor tensor = { .name = name, .dtype = dtype, .rank = rank };
    struct tensor *input = append(run, run->inputs, &run->input_count, tensor, shape);
    struct filling filling = {
        .fill = fill,
        .seed = run->seed,
        .stream = philox_stream(run->seed, run->workload->name, name),
        .limit = limit < 0 ? 0 : (uint64_t)limit,
    };

    check_filling(run, name, dtype, &filling);
    run->backend->fill(run, input, &filling);
    return input;
}

struct tensor *run_input_values(struct run *run, const char *name, enum dtype dtype,
                                int rank, const int64_t *shape, const void *values)
{
    struct tensor tensor = { .name = name, .dtype = dtype, .rank = rank };
    struct tensor *input = append(run, run->inputs, &run->input_count, tensor, shape);

    run->backend->upload(run, input->data, values, checked_bytes(run, input));
    return input;
}

struct tensor *run_output(struct run *run, const char *name, enum dtype dtype, int rank,
                          const int64_t *shape)
{
    struct tensor tensor = { .name = name, .dtype = dtype, .rank = rank };

    return append(run, run->outputs, &run->output_count, tensor, shape);
}

void *run_alloc(struct run *run, size_t bytes)
{
    void *memory = allocate(run, "scratch", bytes ? bytes : 1);

    if (!circumstances_now()->is_poisoned) {
        run->backend->poison(run, memory, bytes, scratch_pattern);
    }
    return memory;
}

void run_init(struct run *run, const struct args *args, const struct backend *backend)
{
    circumstances_set(&args->circumstances);
    *run = (struct run){
        .workload = args->workload,
        .variant = args->variant,
        .size = args->size,
        .dtype = args->dtype,
        .seed = args->seed,
        .threads = args->threads,
        .iterations = args->iterations,
        .algorithm = args->variant->algorithm,
        .claim = args->variant->claim,
        .has_loss = args->workload->loss != NULL,
        .backend = backend,
    };
}

void run_prepare(struct run *run)
{
    const char *reason = NULL;

    run->backend->open(run);
    if (run->variant->unsupported) {
        reason = run->variant->unsupported(run);
    }
    if (reason) {
        run_unsupported(run, "%s", reason);
    }
    load_start(run);
    run->workload->setup(run);
    if (run->output_count == 0) {
        run_defect(run, "setup created no output");
    }
    if (run->weights_output < 0 || run->weights_output >= run->output_count) {
        run_defect(run, "weights_output is %d, of %d outputs", run->weights_output,
                   run->output_count);
    }
}

void run_finish(struct run *run)
{
    load_check(run);
    load_stop();
    if (run->workload->teardown) {
        run->workload->teardown(run);
    }
}

/* Different in every process and every iteration, so an element that nobody wrote shows
 * as a difference even between two runs of one iteration each. */
static uint32_t poison_pattern(int index)
{
    static uint32_t salt;

    if (salt == 0) {
        const struct circumstances *now = circumstances_now();

        salt = now->is_poisoned ? now->pattern : (uint32_t)circumstances_random();
    }
    return salt + 0x9e3779b9u * (uint32_t)index;
}

static void poison_results(struct run *run, int index)
{
    uint32_t pattern = poison_pattern(index);
    uint64_t nan_bits;

    for (int i = 0; i < run->output_count; i++) {
        struct tensor *t = &run->outputs[i];
        size_t bytes = (size_t)tensor_elements(t) * dtype_bytes(t->dtype);

        run->backend->poison(run, t->data, bytes, pattern);
    }
    nan_bits = 0x7ff8000000000000u | pattern;
    memcpy(&run->loss, &nan_bits, sizeof run->loss);
}

static const char *library_called; /* NULL: none */

void run_library_called(const char *library)
{
    if (library_called && strcmp(library_called, library) != 0) {
        library = "more than one library";
    }
    library_called = library;
}

/* Whose code computes is what the variant says. */
static void check_library(const struct run *run)
{
    const char *named = run->variant->library ? run->variant->library : "no library";
    const char *called = library_called ? library_called : "no library";

    if (strcmp(named, called) != 0) {
        run_defect(run, "the variant names %s, and %s computed", named, called);
    }
}

double run_compute(struct run *run, int index)
{
    double milliseconds;

    run->iteration = index;
    poison_results(run, index);
    run->backend->warm(run);
    run->backend->timer_start(run);
    run->variant->compute(run);
    milliseconds = run->backend->timer_stop(run);
    check_library(run);
    return run->probes ? probes_iteration_end(run, milliseconds) : milliseconds;
}

static struct digest digest_all(struct run *run, const struct tensor *tensors, int count)
{
    struct digest parts[RUN_TENSORS_MAX];

    for (int i = 0; i < count; i++) {
        parts[i] = run->backend->digest(run, &tensors[i]);
    }
    return digest_combine(parts, count);
}

struct digest run_input_digest(struct run *run)
{
    return digest_all(run, run->inputs, run->input_count);
}

struct digest run_output_digest(struct run *run)
{
    return digest_all(run, run->outputs, run->output_count);
}

int64_t run_output_elements(const struct run *run)
{
    int64_t elements = 0;

    for (int i = 0; i < run->output_count; i++) {
        elements += tensor_elements(&run->outputs[i]);
    }
    return elements;
}

int64_t run_output_bytes(const struct run *run)
{
    int64_t bytes = 0;

    for (int i = 0; i < run->output_count; i++) {
        const struct tensor *t = &run->outputs[i];

        bytes += tensor_elements(t) * (int64_t)dtype_bytes(t->dtype);
    }
    return bytes;
}
