#include "workloads/worker/check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workloads/instruments/exact_sum.h"
#include "workloads/instruments/half.h"
#include "workloads/worker/run.h"
#include "workloads/worker/status.h"

/* `run` comes first: hooks hand back a pointer to it. */
static struct check {
    struct run run;
    struct emit emit;
    struct host_copies copies;
} check;

static double element(enum dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case DTYPE_FLOAT32:
        return ((const float *)data)[i];
    case DTYPE_FLOAT64:
        return ((const double *)data)[i];
    case DTYPE_FLOAT16:
        return f32_from_f16(((const uint16_t *)data)[i]);
    case DTYPE_BFLOAT16:
        return f32_from_bf16(((const uint16_t *)data)[i]);
    case DTYPE_INT32:
        return ((const int32_t *)data)[i];
    case DTYPE_INT64:
        return (double)((const int64_t *)data)[i];
    default:
        return ((const uint8_t *)data)[i];
    }
}

static double error_ratio(double got, double expected, double bound)
{
    double error;

    if (!isfinite(got) || !isfinite(expected) || !isfinite(bound) || bound < 0) {
        return INFINITY;
    }
    if (got == expected) {
        return 0;
    }
    error = fabs(got - expected);
    return error > bound ? fmax(error / bound, nextafter(1, 2)) : error / bound;
}

struct deviation check_compare(enum dtype dtype, const void *data, int64_t elements,
                               const double *expected, const double *bound)
{
    struct deviation worst = { .ratio = -1 };

    for (int64_t i = 0; i < elements; i++) {
        double got = element(dtype, data, i);
        double ratio = error_ratio(got, expected[i], bound[i]);

        /* The negation lets a ratio that is not a number fail. */
        worst.failed += !(ratio <= 1);
        if (!(ratio <= worst.ratio)) {
            worst.ratio = ratio;
            worst.index = i;
            worst.got = got;
            worst.expected = expected[i];
            worst.bound = bound[i];
        }
    }
    return worst;
}

struct reading reading_of_device(struct run *run, const struct tensor *tensor)
{
    struct reading reading = {
        .digest = run->backend->digest(run, tensor),
        .sum = run->backend->exact_sum(run, tensor),
    };

    return reading;
}

struct reading reading_of_copy(const struct tensor *tensor, const void *copy)
{
    struct exact_sum sum;
    struct reading reading;

    exact_sum_init(&sum);
    exact_sum_add(&sum, (int)tensor->dtype, copy, tensor_elements(tensor));
    reading = (struct reading){
        .digest = digest_tensor(copy, (int)tensor->dtype, dtype_bytes(tensor->dtype),
                                tensor->rank, tensor->shape, 1),
        .sum = exact_sum_round(&sum),
    };
    return reading;
}

static uint64_t bits(double value)
{
    uint64_t word;

    memcpy(&word, &value, sizeof word);
    return word;
}

bool reading_equal(struct reading a, struct reading b)
{
    return digest_equal(a.digest, b.digest) && bits(a.sum) == bits(b.sum);
}

/* Adds both, and whether they agree, to the open object of an output. */
static void reading_emit(struct emit *emit, struct reading device, struct reading copy)
{
    emit_digest(emit, "digest", device.digest);
    emit_digest(emit, "digest_of_copy", copy.digest);
    emit_bits(emit, "weight_sum", device.sum);
    emit_bits(emit, "weight_sum_of_copy", copy.sum);
    emit_bool(emit, "instruments_ok", reading_equal(device, copy));
}

static void *host_copy(struct run *run, const struct tensor *tensor)
{
    size_t bytes = (size_t)tensor_elements(tensor) * dtype_bytes(tensor->dtype);
    void *copy = malloc(bytes);

    if (copy) {
        run->backend->download(run, copy, tensor->data, bytes);
    }
    return copy;
}

static bool host_copies_take(struct run *run, const struct tensor *tensors, int count,
                             struct tensor *ret_copies)
{
    for (int i = 0; i < count; i++) {
        ret_copies[i] = tensors[i];
        ret_copies[i].data = host_copy(run, &tensors[i]);
        if (!ret_copies[i].data) {
            return false;
        }
    }
    return true;
}

bool host_copies_take_inputs(struct host_copies *copies, struct run *run)
{
    return host_copies_take(run, run->inputs, run->input_count, copies->inputs);
}

bool host_copies_take_outputs(struct host_copies *copies, struct run *run)
{
    copies->run = *run;
    return host_copies_take(run, run->outputs, run->output_count, copies->run.outputs);
}

struct deviation check_output(const struct host_copies *copies, int index)
{
    const struct tensor *output = &copies->run.outputs[index];
    size_t elements = (size_t)tensor_elements(output);
    double *expected = run_host_alloc(elements * sizeof *expected);
    double *bound = run_host_alloc(elements * sizeof *bound);
    struct deviation worst;

    for (size_t i = 0; i < elements; i++) {
        expected[i] = bound[i] = NAN; /* what reference leaves out does not pass */
    }
    copies->run.workload->reference(&copies->run, copies->inputs, output, expected,
                                    bound);
    worst =
        check_compare(output->dtype, output->data, (int64_t)elements, expected, bound);
    free(bound);
    free(expected);
    return worst;
}

static void emit_deviation(struct emit *emit, const struct deviation *worst)
{
    emit_int(emit, "failed", worst->failed);
    emit_bool(emit, "ok", worst->failed == 0);
    emit_double(emit, "max_error_to_bound", worst->ratio);
    emit_object(emit, "worst");
    emit_int(emit, "index", worst->index);
    emit_double(emit, "got", worst->got);
    emit_double(emit, "expected", worst->expected);
    emit_double(emit, "bound", worst->bound);
    emit_object_end(emit);
}

static bool emit_output(struct check *c, int index)
{
    const struct tensor *output = &c->copies.run.outputs[index];
    struct deviation worst = check_output(&c->copies, index);
    struct reading device = reading_of_device(&c->run, &c->run.outputs[index]);
    struct reading copy = reading_of_copy(output, output->data);

    emit_object(&c->emit, NULL);
    emit_string(&c->emit, "name", output->name);
    emit_int(&c->emit, "elements", tensor_elements(output));
    emit_deviation(&c->emit, &worst);
    reading_emit(&c->emit, device, copy);
    emit_object_end(&c->emit);
    return worst.failed == 0 && reading_equal(device, copy);
}

static void begin(struct check *c)
{
    const struct run *run = &c->run;
    char seed[24];

    snprintf(seed, sizeof seed, "%" PRIu64, run->seed);
    emit_begin(&c->emit);
    emit_string(&c->emit, "workload", run->workload->name);
    emit_string(&c->emit, "variant", run->variant->name);
    emit_string(&c->emit, "size", run->size->name);
    emit_string(&c->emit, "dtype", dtype_name(run->dtype));
    emit_string(&c->emit, "seed", seed);
    emit_int(&c->emit, "threads", run->threads);
    emit_string(&c->emit, "algorithm", run->algorithm);
}

static int finish(struct check *c, int status)
{
    int error = emit_end(&c->emit);

    if (error) {
        fprintf(stderr, "reprod-worker: cannot write the result: %s\n", strerror(error));
        return STATUS_OUTPUT;
    }
    return status;
}

static int end_early_cb(struct run *run, const char *outcome, const char *cause)
{
    struct check *c = (struct check *)run;

    begin(c);
    emit_bool(&c->emit, "ok", false);
    emit_string(&c->emit, "outcome", outcome);
    emit_string(&c->emit, "cause", cause);
    return finish(c, STATUS_UNCHECKED);
}

int check_run(const struct args *args, const struct backend *backend)
{
    struct check *c = &check;
    struct run *run = &c->run;
    bool copied;
    bool ok;

    emit_init(&c->emit, STDOUT_FILENO);
    run_init(run, args, backend);
    run->iterations = 1;
    run_on_early_end(end_early_cb);
    run_prepare(run);
    copied = host_copies_take_inputs(&c->copies, run);
    run_compute(run, 0);
    if (!host_copies_take_outputs(&c->copies, run) || !copied) {
        run_infra(run, "no host memory for a copy of inputs and outputs");
    }
    begin(c);
    ok = true;
    emit_array(&c->emit, "outputs");
    for (int i = 0; i < run->output_count; i++) {
        ok &= emit_output(c, i);
    }
    emit_array_end(&c->emit);
    emit_bool(&c->emit, "ok", ok);
    emit_string(&c->emit, "outcome", "completed");
    emit_null(&c->emit, "cause");
    run_finish(run);
    return finish(c, ok ? STATUS_OK : STATUS_MISMATCH);
}
