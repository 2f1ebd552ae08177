/* The backend of the CPU: tensors lie in the memory of the process. */
#include "workloads/worker/backend.h"

#include <gnu/libc-version.h>
#include <limits.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "workloads/instruments/exact_sum.h"
#include "workloads/worker/cpu.h"
#include "workloads/worker/environment.h"
#include "workloads/worker/fill_block.h"
#include "workloads/worker/libraries.h"

enum { ALIGNMENT = 64, THREADS_DEFAULT = 2, THREADS_MAX = 256 };

static const char *cpu_device_id(void)
{
    static char id[sizeof "cpu:" + HOST_NAME_MAX];

    if (id[0] == '\0') {
        memcpy(id, "cpu:", sizeof "cpu:");
        gethostname(id + strlen(id), HOST_NAME_MAX + 1);
    }
    return id;
}

static bool cpu_select(const char *device, char ret_message[BACKEND_MESSAGE_SIZE])
{
    if (device && strcmp(device, cpu_device_id()) != 0) {
        snprintf(ret_message, BACKEND_MESSAGE_SIZE,
                 "unknown device '%.128s'; this machine has '%s'", device,
                 cpu_device_id());
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
    long pages;
    long page;
    void *memory = NULL;

    (void)run;
    pages = sysconf(_SC_PHYS_PAGES);
    page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && bytes / (size_t)page >= (size_t)pages) {
        return NULL;
    }
    return posix_memalign(&memory, ALIGNMENT, bytes) == 0 ? memory : NULL;
}

/* Below this many elements handing out work costs more than it saves. */
enum { WORTH_A_TEAM = 1 << 14 };

static void cpu_fill(struct run *run, struct tensor *tensor,
                     const struct filling *filling)
{
    int64_t n = tensor_elements(tensor);
    int64_t blocks = fill_blocks(tensor, filling, n);
#pragma omp parallel for schedule(static) num_threads(run->threads) if (n >= WORTH_A_TEAM)
    for (int64_t block = 0; block < blocks; block++) {
        fill_block(tensor, filling, block, n);
    }
}

static void cpu_copy(struct run *run, void *to, const void *from, size_t bytes)
{
    (void)run;
    memcpy(to, from, bytes);
}

static void cpu_poison(struct run *run, void *device, size_t bytes, uint32_t pattern)
{
    unsigned char *to;
    size_t words;

    (void)run;
    to = device;
    words = bytes / sizeof pattern;
    for (size_t i = 0; i < words; i++) {
        memcpy(to + i * sizeof pattern, &pattern, sizeof pattern);
    }
    for (size_t i = words * sizeof pattern; i < bytes; i++) {
        to[i] = (unsigned char)(pattern >> (8 * (i % sizeof pattern)));
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
    struct digest_source *sources = run_host_alloc((size_t)count * sizeof *sources);

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

/* More than a core's own caches hold, and little enough for many processes. */
enum { STREAM_FLOATS = 2 << 20, CORE_FLOATS = 1 << 10, CORE_ROUNDS = 4096 };

static void core_load(float *values)
{
    for (int round = 0; round < CORE_ROUNDS; round++) {
        for (int i = 0; i < CORE_FLOATS; i++) {
            values[i] = values[i] * 0.999f + 0.001f;
        }
    }
}

static void memory_load(float *to, const float *from)
{
    for (int64_t i = 0; i < STREAM_FLOATS; i++) {
        to[i] = from[i] * 0.5f + to[i];
    }
}

static void cpu_load(struct run *run)
{
    static float *values;
    int64_t each = 2 * (int64_t)STREAM_FLOATS;

    if (!values) {
        int64_t count = run->threads * each;

        values = run_host_alloc((size_t)count * sizeof *values);
        for (int64_t i = 0; i < count; i++) {
            values[i] = 1;
        }
    }
#pragma omp parallel num_threads(run->threads)
    {
#pragma omp for schedule(static, 1) nowait
        for (int thread = 0; thread < run->threads; thread++) {
            core_load(values + thread * each);
            memory_load(values + thread * each, values + thread * each + STREAM_FLOATS);
        }
    }
}

static void emit_libc(struct emit *emit)
{
    char text[64];

    snprintf(text, sizeof text, "glibc %s", gnu_get_libc_version());
    emit_string(emit, "libc", text);
}

static void emit_openmp(struct emit *emit)
{
    char library[LIBRARY_PATH_SIZE];
    char text[LIBRARY_PATH_SIZE + 32];

    libraries_openmp(library);
    snprintf(text, sizeof text, "%s (OpenMP %d)", library, _OPENMP);
    emit_string(emit, "openmp", text);
}

static void emit_model(struct emit *emit)
{
    char model[CPU_TEXT_SIZE];

    cpu_model(model);
    emit_string(emit, "model", model);
}

static void emit_architecture(struct emit *emit)
{
    struct utsname machine;

    emit_string(emit, "architecture", uname(&machine) == 0 ? machine.machine : "unknown");
}

static void cpu_emit_environment(struct emit *emit, const struct run *run)
{
    emit_model(emit);
    emit_architecture(emit);
    emit_string(emit, "vector_isa", cpu_vector_isa());
    emit_int(emit, "threads", run->threads);
    emit_libc(emit);
    emit_openmp(emit);
}

static void cpu_emit_probe(struct emit *emit)
{
    emit_object(emit, "versions");
    emit_libc(emit);
    emit_openmp(emit);
    facts_emit(emit, "cpu");
    emit_object_end(emit);
    emit_array(emit, "devices");
    emit_object(emit, NULL);
    emit_string(emit, "id", cpu_device_id());
    emit_model(emit);
    emit_object(emit, "attributes");
    emit_architecture(emit);
    emit_string(emit, "vector_isa", cpu_vector_isa());
    emit_int(emit, "processors", sysconf(_SC_NPROCESSORS_ONLN));
    emit_int(emit, "memory_bytes",
             (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
    emit_object_end(emit);
    emit_object_end(emit);
    emit_array_end(emit);
    emit_null(emit, "cause");
}

static const struct backend cpu_backend = {
    .name = "cpu",
    .alignment = 64,
    .threads_default = THREADS_DEFAULT,
    .threads_max = THREADS_MAX,
    .select = cpu_select,
    .open = cpu_open,
    .device_id = cpu_device_id,
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
    .emit_environment = cpu_emit_environment,
    .emit_probe = cpu_emit_probe,
};
BACKEND_REGISTER(cpu_backend);
