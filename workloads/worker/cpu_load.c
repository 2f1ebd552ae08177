#include "workloads/worker/cpu_load.h"

#include <stdint.h>

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

void cpu_load(struct run *run)
{
    static float *values;
    int64_t each = 2 * (int64_t)STREAM_FLOATS;

    if (!values) {
        int64_t count = run->threads * each;

        values = run_host_alloc((size_t)count * sizeof(*values));
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
