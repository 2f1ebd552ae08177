#include "tests/selftest/selftest.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "workloads/worker/backend.h"
#include "workloads/worker/run.h"

const struct workload_size selftest_sizes[1] = {
    { .name = "small", .description = "x[64]" },
};

void selftest_setup(struct run *run)
{
    int64_t shape[] = { SELFTEST_ELEMENTS };
    run_input(run, "x", DTYPE_FLOAT32, 1, shape, FILL_UNIFORM, 0);
    run_output(run, "y", DTYPE_FLOAT32, 1, shape);
}

void selftest_compute(struct run *run)
{
    const float *x = run->inputs[0].data;
    float *y = run->outputs[0].data;
    for (int i = 0; i < SELFTEST_ELEMENTS; i++) {
        y[i] = 2 * x[i];
    }
}

void selftest_reference(const struct run *run, const struct tensor *inputs,
                        const struct tensor *output, double *ret_expected,
                        double *ret_bound)
{
    const float *x = inputs[0].data;

    for (int64_t i = 0; i < tensor_elements(output); i++) {
        ret_expected[i] = 2.0 * x[i];
        ret_bound[i] = 0;
    }
    if (run->variant->compute == selftest_compute_varying) {
        ret_bound[0] = 0x1p25; /* any number that it may draw */
    }
}

uint64_t selftest_entropy(void)
{
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random) {
        abort();
    }
    return random;
}

void selftest_compute_varying(struct run *run)
{
    selftest_compute(run);
    ((float *)run->outputs[0].data)[0] = (float)(selftest_entropy() >> 40);
}

void selftest_keep(const void *memory)
{
    __asm__ volatile("" : : "r"(memory) : "memory");
}

bool selftest_is_control(const struct run *run)
{
    return run->variant->control;
}

void selftest_write(const void *bytes, size_t count)
{
    const char *number = getenv("REPROD_RESULT_FD");
    int fd = number ? (int)strtol(number, NULL, 10) : 3;
    const char *at = bytes;
    while (count > 0) {
        ssize_t written = write(fd, at, count);
        if (written < 0) {
            _exit(0); /* nobody reads: what this run would show is shown */
        }
        at += written;
        count -= (size_t)written;
    }
}

void selftest_printf(const char *format, ...)
{
    char text[1024];
    va_list arguments;
    int length;
    va_start(arguments, format);
    length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    selftest_write(text, (size_t)length);
}

struct selftest_claims selftest_honest_claims(struct run *run)
{
    return (struct selftest_claims){
        .device = run->backend->device_id(),
        .iterations = run->iterations,
        .elements = run_output_elements(run),
        .bytes = run_output_bytes(run) * run->iterations,
    };
}

const char *selftest_telemetry;

static void write_rest_of_event(void)
{
    if (selftest_telemetry) {
        selftest_printf(",\"telemetry\":");
        selftest_write(selftest_telemetry, strlen(selftest_telemetry));
    }
    selftest_printf("}\n");
}

static void input_digest(struct run *run, char ret_hex[DIGEST_HEX_SIZE])
{
    digest_hex(run_input_digest(run), ret_hex);
}

void selftest_write_start(struct run *run, const char *device)
{
    const char *nonce = getenv("REPROD_NONCE");
    char digest[DIGEST_HEX_SIZE];
    input_digest(run, digest);
    selftest_printf(
        "{\"event\":\"start\",\"v\":1,\"pid\":%d,\"nonce\":\"%s\",\"workload\":\"%s\","
        "\"version\":1,"
        "\"variant\":\"%s\",\"size\":\"small\",\"dtype\":\"float32\",\"seed\":\"%llu\","
        "\"iterations\":%d,\"threads\":%d,\"backend\":\"cpu\",\"device\":\"%s\","
        "\"algorithm\":\"self-test\",\"claim\":null,\"input_digest\":\"%s\","
        "\"environment\":{\"backend\":\"cpu\",\"model\":\"self-test\",\"threads\":2,"
        "\"worker_build\":\"self-test\"},\"libraries\":[]",
        (int)getpid(), nonce ? nonce : "", run->workload->name, run->variant->name,
        (unsigned long long)run->seed, run->iterations, run->threads, device, digest);
    write_rest_of_event();
}

void selftest_write_iteration(int index)
{
    selftest_printf(
        "{\"event\":\"iteration\",\"i\":%d,"
        "\"digest\":\"0123456789abcdef0123456789abcdef\","
        "\"weight_sum\":\"3ff0000000000000\",\"loss\":null,\"ms\":0.5,"
        "\"algorithm\":\"self-test\"}\n",
        index);
}

void selftest_write_end(struct run *run, const struct selftest_claims *claims)
{
    char digest[DIGEST_HEX_SIZE];
    input_digest(run, digest);
    selftest_printf(
        "{\"event\":\"end\",\"outcome\":\"completed\",\"cause\":null,"
        "\"iterations\":%d,\"elements\":%lld,\"bytes_hashed\":%lld,"
        "\"device\":\"%s\",\"input_digest\":\"%s\"",
        claims->iterations, (long long)claims->elements, (long long)claims->bytes,
        claims->device, digest);
    write_rest_of_event();
}
