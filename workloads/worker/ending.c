#include "workloads/worker/ending.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { CAUSE_SIZE = 1024 };

static run_end_cb *early_end;

void run_on_early_end(run_end_cb *on_end)
{
    early_end = on_end;
}

__attribute__((format(printf, 3, 0))) static int
end_early(struct run *run, const char *outcome, const char *format, va_list arguments)
{
    char cause[CAUSE_SIZE];

    vsnprintf(cause, sizeof cause, format, arguments);
    return early_end(run, outcome, cause);
}

void run_unsupported(struct run *run, const char *format, ...)
{
    va_list arguments;
    int status;

    va_start(arguments, format);
    status = end_early(run, "unsupported", format, arguments);
    va_end(arguments);
    exit(status);
}

void run_infra(struct run *run, const char *format, ...)
{
    va_list arguments;
    int status;

    va_start(arguments, format);
    status = end_early(run, "infra", format, arguments);
    va_end(arguments);
    exit(status);
}

void run_out_of_memory(struct run *run, const char *format, ...)
{
    va_list arguments;
    int status;

    va_start(arguments, format);
    status = end_early(run, "out_of_memory", format, arguments);
    va_end(arguments);
    exit(status);
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
