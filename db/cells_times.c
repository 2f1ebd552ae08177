#include "db/cells_times.h"

#include <string.h>

#include "db/tx.h"

enum err_code cells_times_add(struct tx *tx, int64_t cell, int64_t median_ns,
                              struct err *err)
{
    struct query q;

    if (median_ns < 1) {
        return ERR_OK;
    }
    query_begin(&q, tx,
                "INSERT INTO cell_time (cell, bucket, runs) VALUES (?, ?, 1)"
                " ON CONFLICT (cell, bucket) DO UPDATE SET runs = runs + 1");
    query_bind_int(&q, cell);
    query_bind_int(&q, times_bucket(median_ns));
    return query_run(&q, err);
}

enum err_code cells_times_stored(struct tx *tx, int64_t cell, int64_t *ret_counts,
                                 struct err *err)
{
    struct query q;

    memset(ret_counts, 0, TIMES_BUCKETS * sizeof *ret_counts);
    query_begin(&q, tx, "SELECT bucket, runs FROM cell_time WHERE cell = ?");
    query_bind_int(&q, cell);
    while (query_step(&q)) {
        int64_t bucket = query_take_int(&q);

        /* A damaged file may hold any bucket. */
        ret_counts[bucket < TIMES_BUCKETS ? bucket : TIMES_BUCKETS - 1] +=
            query_take_int(&q);
    }
    return query_end(&q, err);
}

enum err_code cells_times_recount(struct tx *tx, int64_t cell, int64_t *ret_counts,
                                  struct err *err)
{
    struct query q;

    memset(ret_counts, 0, TIMES_BUCKETS * sizeof *ret_counts);
    query_begin(&q, tx,
                "SELECT median_ns FROM run WHERE cell = ? AND outcome = 'completed'"
                " AND median_ns > 0 AND circumstances IS NULL");
    query_bind_int(&q, cell);
    while (query_step(&q)) {
        ret_counts[times_bucket(query_take_int(&q))]++;
    }
    return query_end(&q, err);
}

enum err_code cells_times_load(struct tx *tx, struct cell *cell, struct err *err)
{
    int64_t counts[TIMES_BUCKETS];

    if (cells_times_stored(tx, cell->id, counts, err) != ERR_OK) {
        return err->code;
    }
    cell->times = times_quartiles(counts);
    return ERR_OK;
}
