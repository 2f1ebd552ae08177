#include "workloads/worker/backend.h"

#include <limits.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "workloads/instruments/exact_sum.h"
#include "workloads/worker/cpu_facts.h"
#include "workloads/worker/cpu_fill.h"
#include "workloads/worker/cpu_load.h"
#include "workloads/worker/run.h"

enum { ALIGNMENT = 64, THREADS_DEFAULT = 2, THREADS_MAX = 256 };

static bool cpu_select(const char *device, char ret_message[BACKEND_MESSAGE_SIZE])
{
    if (device && strcmp(device, cpu_facts_device_id()) != 0) {
        snprintf(ret_message, BACKEND_MESSAGE_SIZE,
                 "unknown device '%.128s'; this machine has '%s'", device,
                 cpu_facts_device_id());
        return false;
    }
    return true;
}

static void cpu_open(struct run *run)
{
    omp_set_dynamic(0);
    omp_set_num_threads(run->threads);
}

/* Refuses what exceeds the machine's memory: where memory is overcommitted malloc would
 * agree, and the kernel kill somebody later. */
static void *cpu_allocate(struct run *run, size_t bytes)
{
    (void)run;
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && bytes / (size_t)page >= (size_t)pages) {
        return NULL;
    }
    void *memory = NULL;
    return posix_memalign(&memory, ALIGNMENT, bytes) == 0 ? memory : NULL;
}

static void cpu_copy(struct run *run, void *to, const void *from, size_t bytes)
{
    (void)run;
    memcpy(to, from, bytes);
}

static void cpu_poison(struct run *run, void *device, size_t bytes, uint32_t pattern)
{
    (void)run;
    unsigned char *to = device;
    size_t words = bytes / sizeof(pattern);
    for (size_t i = 0; i < words; i++) {
        memcpy(to + i * sizeof(pattern), &pattern, sizeof(pattern));
    }
    for (size_t i = words * sizeof(pattern); i < bytes; i++) {
        to[i] = (unsigned char)(pattern >> (8 * (i % sizeof(pattern))));
    }
}

static struct digest cpu_digest(struct run *run, const struct tensor *tensor)
{
    return digest_tensor(tensor->data, (int)tensor->dtype, dtype_bytes(tensor->dtype),
                         tensor->rank, tensor->shape, run->threads);
}

static void cpu_digests(struct run *run, const struct tensor *tensors, int count,
                        struct digest *ret_digests)
{
    struct digest_source *sources = run_host_alloc((size_t)count * sizeof(*sources));

    for (int i = 0; i < count; i++) {
        const struct tensor *t = &tensors[i];

        sources[i] = (struct digest_source){ t->data, (int)t->dtype,
                                             dtype_bytes(t->dtype), t->rank, t->shape };
    }
    digest_tensors(sources, count, run->threads, ret_digests);
    free(sources);
}

static double cpu_exact_sum(struct run *run, const struct tensor *tensor)
{
    enum { CHUNK = 1 << 16 };
    int64_t n = tensor_elements(tensor);
    int64_t chunks = (n + CHUNK - 1) / CHUNK;
    size_t size = dtype_bytes(tensor->dtype);
    struct exact_sum total;
    exact_sum_init(&total);
#pragma omp parallel num_threads(run->threads) if (chunks > 1)
    {
        struct exact_sum part;

        exact_sum_init(&part);
#pragma omp for schedule(static)
        for (int64_t c = 0; c < chunks; c++) {
            int64_t first = c * CHUNK;
            int64_t count = n - first < CHUNK ? n - first : CHUNK;

            exact_sum_add(&part, (int)tensor->dtype,
                          (const char *)tensor->data + (size_t)first * size, count);
        }
#pragma omp critical(cpu_exact_sum_merge)
        exact_sum_merge(&total, &part);
    }
    return exact_sum_round(&total);
}

/* A team that was idle starts its second thread milliseconds late, and a short
 * computation would be over by then, on one thread and in one order. */
static void cpu_warm(struct run *run)
{
    int team = 0;
#pragma omp parallel num_threads(run->threads)
    {
#pragma omp barrier
        if (omp_get_thread_num() == 0) {
            team = omp_get_num_threads();
        }
    }
    if (team != run->threads) {
        run_infra(run, "asked for %d OpenMP threads and got %d", run->threads, team);
    }
}

static struct timespec timer;

static void cpu_timer_start(struct run *run)
{
    (void)run;
    clock_gettime(CLOCK_MONOTONIC, &timer);
}

static double cpu_timer_stop(struct run *run)
{
    struct timespec now;

    (void)run;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - timer.tv_sec) * 1e3 +
           (double)(now.tv_nsec - timer.tv_nsec) * 1e-6;
}

static const struct backend cpu_backend = {
    .name = "cpu",
    .threads_default = THREADS_DEFAULT,
    .threads_max = THREADS_MAX,
    .select = cpu_select,
    .open = cpu_open,
    .device_id = cpu_facts_device_id,
    .allocate = cpu_allocate,
    .fill = cpu_fill,
    .upload = cpu_copy,
    .download = cpu_copy,
    .poison = cpu_poison,
    .digest = cpu_digest,
    .digests = cpu_digests,
    .exact_sum = cpu_exact_sum,
    .warm = cpu_warm,
    .timer_start = cpu_timer_start,
    .timer_stop = cpu_timer_stop,
    .load = cpu_load,
    .emit_environment = cpu_facts_emit_environment,
    .emit_probe = cpu_facts_emit_probe,
};
BACKEND_REGISTER(cpu_backend);
