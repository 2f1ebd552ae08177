#include "daemon/jobs/larger.h"

#include <string.h>

static const struct {
    const char *name;
    int64_t bytes;
} sizes[LARGER_SIZES] = {
    { "small", INT64_C(128) << 20 },
    { "medium", INT64_C(512) << 20 },
    { "large", INT64_C(10) << 30 },
};

enum { SEED = 1 };
static const int64_t NS_PER_MS = 1000000;

int larger_rank(const char *size)
{
    for (int i = 0; i < LARGER_SIZES; i++) {
        if (strcmp(sizes[i].name, size) == 0) {
            return i;
        }
    }
    return -1;
}

const char *larger_size(int rank)
{
    return sizes[rank].name;
}

int64_t larger_bytes(int rank)
{
    return sizes[rank].bytes;
}

/* The times of the variants of one size. */
struct spread {
    bool control, other; /* one that has runs enough for a cost */
    int64_t shortest_ns, longest_ns;
};

static bool is_of(const struct larger_cell *cell, const struct catalogue_workload *w,
                  int rank)
{
    return strcmp(cell->key.workload, w->name) == 0 && cell->key.version == w->version &&
           strcmp(cell->key.size, sizes[rank].name) == 0 &&
           strcmp(cell->key.dtype, w->dtypes[0]) == 0 && cell->key.seed == SEED &&
           cell->times.runs >= TIMES_COST_RUNS;
}

/* False where no cost could be told of that size, however long it took. */
static bool measure(const struct catalogue_workload *w, int rank,
                    const struct larger_cell *cells, int count, struct spread *ret)
{
    *ret = (struct spread){ .shortest_ns = INT64_MAX };
    for (int i = 0; i < count; i++) {
        int64_t ns = cells[i].times.median_ns;

        if (is_of(&cells[i], w, rank)) {
            ret->control |= cells[i].is_control;
            ret->other |= !cells[i].is_control;
            ret->shortest_ns = ns < ret->shortest_ns ? ns : ret->shortest_ns;
            ret->longest_ns = ns > ret->longest_ns ? ns : ret->longest_ns;
        }
    }
    return ret->control && ret->other;
}

/* The rank of the next larger size that W has; -1: none. */
static int next_offered(const struct catalogue_workload *w, int rank)
{
    for (int next = rank + 1; next < LARGER_SIZES; next++) {
        for (int s = 0; s < w->size_count; s++) {
            if (strcmp(w->sizes[s].name, sizes[next].name) == 0) {
                return next;
            }
        }
    }
    return -1;
}

static bool is_ours(const struct catalogue_workload *w)
{
    for (int v = 0; v < w->variant_count; v++) {
        if (w->variants[v].subject == SUBJECT_FRAMEWORK) {
            return false;
        }
    }
    return w->surveyed;
}

/* By what the variants took in the size of rank FROM. */
static bool fits(const struct catalogue_workload *w,
                 const struct larger_surveyed *surveyed, int from, int to,
                 const struct spread *spread)
{
    int64_t ns = spread->longest_ns;
    int64_t run_ms = surveyed->run_ms;

    for (int rank = from; rank < to && ns / NS_PER_MS <= LARGER_RUN_MS; rank++) {
        ns *= LARGER_GROWTH;
    }
    run_ms += LARGER_ITERATIONS * (ns / NS_PER_MS);
    return surveyed->memory_bytes / LARGER_SHARE >= sizes[to].bytes &&
           run_ms <= LARGER_RUN_MS &&
           run_ms * LARGER_RUNS * w->variant_count <= LARGER_ALL_MS;
}

int larger_next(const struct catalogue_workload *w,
                const struct larger_surveyed *surveyed, const struct larger_cell *cells,
                int count)
{
    int rank = surveyed->rank;
    struct spread spread;

    if (!is_ours(w)) {
        return -1;
    }
    while (measure(w, rank, cells, count, &spread) &&
           spread.shortest_ns < TIMES_GPU_LEAST_NS) {
        struct spread measured;
        int next = next_offered(w, rank);

        if (next < 0 || !measure(w, next, cells, count, &measured)) {
            return next >= 0 && fits(w, surveyed, rank, next, &spread) ? next : -1;
        }
        rank = next;
    }
    return -1;
}
