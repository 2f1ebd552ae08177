/* How fast the instruments are: bench-instruments KIND MIB THREADS
 *
 *   digest  the digest of a tensor         read   the sum of the same memory's words
 *   copy    memcpy of it                   exact  the exact sum of its float32 values
 *   plain   their sum in binary64, in order
 *
 * Prints {"bytes":…,"seconds":…} of the fastest of REPEATS. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "workloads/instruments/digest.h"
#include "workloads/instruments/exact_sum.h"
#include "workloads/workload.h"

enum { REPEATS = 3 };

struct memory {
    float *values;
    void *copy;
    size_t bytes;
    int threads;
};

static volatile uint64_t seen; /* so that nothing is optimised away */

static void run_digest(const struct memory *m)
{
    int64_t shape[] = { (int64_t)(m->bytes / sizeof(float)) };

    seen =
        digest_tensor(m->values, DTYPE_FLOAT32, sizeof(float), 1, shape, m->threads).lo;
}

static void run_read(const struct memory *m)
{
    const uint64_t *words = (const uint64_t *)(const void *)m->values;
    uint64_t sum = 0;

#pragma omp parallel for reduction(+ : sum) num_threads(m->threads)
    for (size_t i = 0; i < m->bytes / sizeof *words; i++) {
        sum += words[i];
    }
    seen = sum;
}

static void run_copy(const struct memory *m)
{
    memcpy(m->copy, m->values, m->bytes);
    seen = *(const uint64_t *)m->copy;
}

static void run_exact(const struct memory *m)
{
    struct exact_sum sum;

    exact_sum_init(&sum);
    exact_sum_add(&sum, DTYPE_FLOAT32, m->values, (int64_t)(m->bytes / sizeof(float)));
    seen = (uint64_t)(exact_sum_round(&sum) != 0);
}

static void run_plain(const struct memory *m)
{
    double sum = 0;

    for (size_t i = 0; i < m->bytes / sizeof(float); i++) {
        sum += m->values[i];
    }
    seen = (uint64_t)(sum != 0);
}

static const struct {
    const char *name;
    void (*run)(const struct memory *m);
} kinds[] = { { "digest", run_digest },
              { "read", run_read },
              { "copy", run_copy },
              { "exact", run_exact },
              { "plain", run_plain } };

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double fastest(void (*run)(const struct memory *m), const struct memory *m)
{
    double best = 1e9;

    for (int i = 0; i < REPEATS; i++) {
        double from = now();

        run(m);
        best = now() - from < best ? now() - from : best;
    }
    return best;
}

static struct memory make_memory(const char *mebibytes, const char *threads)
{
    struct memory m = { .bytes = (size_t)strtoul(mebibytes, NULL, 10) << 20,
                        .threads = (int)strtol(threads, NULL, 10) };

    m.values = malloc(m.bytes);
    m.copy = malloc(m.bytes);
    if (!m.bytes || m.threads < 1 || !m.values || !m.copy) {
        fprintf(stderr, "no %s MiB, or not %s threads\n", mebibytes, threads);
        exit(1);
    }
    for (size_t i = 0; i < m.bytes / sizeof(float); i++) {
        m.values[i] = (float)((int64_t)(i * 2654435761U % 2000003) - 1000001) * 0x1p-10F;
    }
    memset(m.copy, 0, m.bytes);
    return m;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 4 && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, argv[1]) == 0) {
            struct memory m = make_memory(argv[2], argv[3]);

            printf("{\"bytes\":%zu,\"seconds\":%.9f}\n", m.bytes,
                   fastest(kinds[i].run, &m));
            free(m.values);
            free(m.copy);
            return 0;
        }
    }
    fprintf(stderr,
            "usage: bench-instruments digest|read|copy|exact|plain MIB THREADS\n");
    return 2;
}
