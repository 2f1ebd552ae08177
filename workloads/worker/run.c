#include "workloads/worker/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/worker/circumstances.h"
#include "workloads/worker/load.h"

#include "workloads/worker/probes.h"

enum { CAUSE_SIZE = 1024 };

static run_end_cb *early_end;

void run_on_early_end(run_end_cb *on_end)
{
    early_end = on_end;
}

void run_unsupported(struct run *run, const char *format, ...)
{
    char cause[CAUSE_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(cause, sizeof(cause), format, arguments);
    va_end(arguments);
    exit(early_end(run, "unsupported", cause));
}

void run_infra(struct run *run, const char *format, ...)
{
    char cause[CAUSE_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(cause, sizeof(cause), format, arguments);
    va_end(arguments);
    exit(early_end(run, "infra", cause));
}

void run_out_of_memory(struct run *run, const char *format, ...)
{
    char cause[CAUSE_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(cause, sizeof(cause), format, arguments);
    va_end(arguments);
    exit(early_end(run, "out_of_memory", cause));
}

void run_defect(const struct run *run, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fprintf(stderr, "workload '%s': ", run->workload->name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

void *run_host_alloc(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);

    if (!memory) {
        fprintf(stderr, "reprod-worker: out of host memory (%zu bytes)\n", bytes);
        abort();
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
    run->backend->open(run);
    const char *reason = NULL;
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

    for (int i = 0; i < run->output_count; i++) {
        struct tensor *t = &run->outputs[i];
        size_t bytes = (size_t)tensor_elements(t) * dtype_bytes(t->dtype);

        run->backend->poison(run, t->data, bytes, pattern);
    }
    uint64_t nan_bits = 0x7ff8000000000000u | pattern;
    memcpy(&run->loss, &nan_bits, sizeof(run->loss));
}

double run_compute(struct run *run, int index)
{
    run->iteration = index;
    poison_results(run, index);
    run->backend->warm(run);
    run->backend->timer_start(run);
    run->variant->compute(run);
    double milliseconds = run->backend->timer_stop(run);
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
