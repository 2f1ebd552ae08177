/* Rows added to the destinations that an index names, with duplicates: what segment sums,
 * scatters and the gradients of gather and of embeddings have in common.
 *
 * Two ways: atomic adds in whatever order they happen, and a stable counting sort of the
 * rows by destination, after which each destination has one owner who adds its rows in
 * order.  The order depends on the index alone, never on threads. */
#ifndef WORKLOADS_SHARED_SCATTER_H
#define WORKLOADS_SHARED_SCATTER_H

#include "workloads/shared/scatter_rows.h"

#include <string.h>

#include "workloads/shared/rounding.h"

enum {
    SCATTER_SLOTS = 16,     /* fixed parts of the rows, sorted independently */
    SCATTER_TASK_ROWS = 64, /* rows that a task adds atomically */
    SCATTER_OWNED = 16      /* destinations that a task owns */
};

/* Takes the scratch memory; everything above it in the struct is filled in. */
static inline void scatter_init(struct run *run, struct scatter *scatter)
{
    scatter->starts = run_alloc(run, (SCATTER_SLOTS + 1) * (size_t)scatter->destinations *
                                         sizeof *scatter->starts);
    scatter->sorted = run_alloc(run, (size_t)scatter->rows * sizeof *scatter->sorted);
}

static inline const float *scatter_row(const struct scatter *scatter, int64_t row)
{
    int64_t from = scatter->picked ? scatter->picked[row] : row / scatter->share;

    return scatter->values + from * scatter->width;
}

/* The three below are for all threads of a team: they share the work out among it, and
 * their results are complete when they return. */

static inline void scatter_clear(const struct scatter *scatter)
{
#pragma omp for
    for (int64_t to = 0; to < scatter->destinations; to++) {
        memset(scatter->sums + to * scatter->width, 0,
               (size_t)scatter->width * sizeof(float));
    }
}

/* Every other task goes through its rows backwards, so that rows which are neighbours do
 * not always arrive as neighbours. */
static inline void scatter_add_atomically(const struct scatter *scatter)
{
    int64_t tasks = (scatter->rows + SCATTER_TASK_ROWS - 1) / SCATTER_TASK_ROWS;

#pragma omp for schedule(dynamic, 1)
    for (int64_t task = 0; task < tasks; task++) {
        int64_t begin = task * SCATTER_TASK_ROWS, end = begin + SCATTER_TASK_ROWS;

        if (end > scatter->rows) {
            end = scatter->rows;
        }
        for (int64_t i = begin; i < end; i++) {
            int64_t row = task % 2 ? begin + end - 1 - i : i;
            float *to = scatter->sums + scatter->index[row] * scatter->width;
            const float *from = scatter_row(scatter, row);

            for (int64_t c = 0; c < scatter->width && scatter->index[row] >= 0; c++) {
#pragma omp atomic
                to[c] += from[c];
            }
        }
    }
}

static inline void scatter_sort(const struct scatter *scatter)
{
    int64_t destinations = scatter->destinations;

#pragma omp for
    for (int64_t slot = 0; slot < SCATTER_SLOTS; slot++) {
        int32_t *counts = scatter->starts + slot * destinations;

        memset(counts, 0, (size_t)destinations * sizeof *counts);
        for (int64_t row = slot * scatter->rows / SCATTER_SLOTS;
             row < (slot + 1) * scatter->rows / SCATTER_SLOTS; row++) {
            if (scatter->index[row] >= 0) {
                counts[scatter->index[row]]++;
            }
        }
    }
#pragma omp single
    {
        int32_t start = 0;

        for (int64_t to = 0; to < destinations; to++) {
            for (int64_t slot = 0; slot < SCATTER_SLOTS; slot++) {
                int32_t count = scatter->starts[slot * destinations + to];

                scatter->starts[slot * destinations + to] = start;
                start += count;
            }
            scatter->starts[SCATTER_SLOTS * destinations + to] = start;
        }
    }
#pragma omp for
    for (int64_t slot = 0; slot < SCATTER_SLOTS; slot++) {
        int32_t *next = scatter->starts + slot * destinations;

        for (int64_t row = slot * scatter->rows / SCATTER_SLOTS;
             row < (slot + 1) * scatter->rows / SCATTER_SLOTS; row++) {
            if (scatter->index[row] >= 0) {
                scatter->sorted[next[scatter->index[row]]++] = (int32_t)row;
            }
        }
    }
}

/* After scatter_sort: where in `sorted` the rows of destination TO begin, and end.  The
 * sort has moved each start of a slot to its end. */
static inline int64_t scatter_begin(const struct scatter *scatter, int64_t to)
{
    return to ? scatter->starts[SCATTER_SLOTS * scatter->destinations + to - 1] : 0;
}

static inline int64_t scatter_end(const struct scatter *scatter, int64_t to)
{
    return scatter->starts[SCATTER_SLOTS * scatter->destinations + to];
}

/* After scatter_sort. */
static inline void scatter_add_in_order(const struct scatter *scatter)
{
#pragma omp for schedule(dynamic, SCATTER_OWNED)
    for (int64_t to = 0; to < scatter->destinations; to++) {
        float *sums = scatter->sums + to * scatter->width;

        memset(sums, 0, (size_t)scatter->width * sizeof(float));
        for (int64_t i = scatter_begin(scatter, to); i < scatter_end(scatter, to); i++) {
            const float *from = scatter_row(scatter, scatter->sorted[i]);

#pragma omp simd
            for (int64_t c = 0; c < scatter->width; c++) {
                sums[c] += from[c];
            }
        }
    }
}

/* The two ways as variants of a workload whose state is a struct scatter. */
static inline void scatter_compute_unordered(struct run *run)
{
    const struct scatter *scatter = run->state;

#pragma omp parallel num_threads(run->threads)
    {
        scatter_clear(scatter);
        scatter_add_atomically(scatter);
    }
}

static inline void scatter_compute_ordered(struct run *run)
{
    const struct scatter *scatter = run->state;

#pragma omp parallel num_threads(run->threads)
    {
        scatter_sort(scatter);
        scatter_add_in_order(scatter);
    }
}

/* For `reference` hooks: the sums in float64, and how far rounding may lead from them.
 * INDEX has the destinations; a row's values are those that PICKED picks, or, where it is
 * NULL, shared by as many neighbours as there are rows for each of VALUES. */
static inline void scatter_reference(const struct run *run, const struct tensor *index,
                                     const struct tensor *picked,
                                     const struct tensor *values,
                                     const struct tensor *output, double *ret_sums,
                                     double *ret_bound)
{
    struct exact_sums exact = sums_begin_counted(run, output, ret_sums, ret_bound);
    struct scatter scatter = { .rows = tensor_elements(index),
                               .width = output->shape[1] };

    scatter.share = picked ? 1 : scatter.rows / values->shape[0];
    scatter.picked = picked ? picked->data : NULL;
    scatter.index = index->data;
    scatter.values = values->data;
    for (int64_t row = 0; row < scatter.rows; row++) {
        int64_t to = scatter.index[row];

        for (int64_t c = 0; c < scatter.width && to >= 0; c++) {
            sums_add(&exact, to * scatter.width + c, scatter_row(&scatter, row)[c]);
        }
    }
    sums_finish(&exact, 0);
}

#endif
