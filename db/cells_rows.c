#include "db/cells_rows.h"

#include <inttypes.h>
#include <string.h>

#include "db/case_keys.h"
#include "db/tx.h"

/* The table's CHECK keeps other names out. */
static enum verdict parse_verdict(const char *name)
{
    enum verdict verdict;

    return verdict_parse(name, &verdict) == 0 ? verdict : VERDICT_UNMEASURED;
}

static void take_evidence(struct query *q, struct evidence *ret_evidence)
{
    static const enum outcome order[] = {
        OUTCOME_COMPLETED, OUTCOME_UNSUPPORTED,   OUTCOME_TIMEOUT,
        OUTCOME_CRASHED,   OUTCOME_OUT_OF_MEMORY, OUTCOME_LOST,
        OUTCOME_INFRA,     OUTCOME_CANCELLED,     OUTCOME_INVALID,
    };

    _Static_assert(sizeof order / sizeof order[0] == OUTCOME_COUNT, "a column each");
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        ret_evidence->runs[order[i]] = query_take_int(q);
    }
    ret_evidence->iterations = query_take_int(q);
    ret_evidence->distinct_digests = query_take_int(q);
    ret_evidence->devices = query_take_int(q);
    ret_evidence->disturbed = query_take_int(q);
    ret_evidence->contended = query_take_int(q);
    ret_evidence->claimed = query_take_int(q);
    ret_evidence->warned = query_take_int(q);
    ret_evidence->completed_since_failure = query_take_int(q);
    ret_evidence->last_completed_ms = query_take_int(q);
}

void cell_rows_take(struct query *q, struct cell_row *ret_row)
{
    struct cell *cell = &ret_row->cell;

    cell->id = query_take_int(q);
    case_keys_take(q, &cell->key);
    cell->is_control = query_take_int(q);
    query_take_text(q, cell->environment, sizeof cell->environment);
    take_evidence(q, &cell->evidence);
    cell->verdict = parse_verdict(query_borrow_text(q));
    query_take_text(q, cell->reason, sizeof cell->reason);
    cell->changed_ms = query_take_int(q);
    cell->first_ms = query_take_int(q);
    cell->last_ms = query_take_int(q);
    cell->min_ns = query_take_int(q);
    cell->max_ns = query_take_int(q);
    cell->median_ns_sum = query_take_int(q);
    query_take_text(q, cell->digest, sizeof cell->digest);
    ret_row->case_key = query_take_int(q);
    ret_row->environment = query_take_int(q);
    query_take_text(q, ret_row->no_control, sizeof ret_row->no_control);
    query_take_text(q, ret_row->last_failed_run, sizeof ret_row->last_failed_run);
    ret_row->digest_runs = query_take_int(q);
    ret_row->digest_iterations = query_take_int(q);
}

enum err_code cell_rows_load(struct tx *tx, int64_t id, struct cell_row *ret_row,
                             struct err *err)
{
    struct query q;
    bool found;

    query_begin(&q, tx,
                "SELECT " CELL_ROW_COLUMNS
                " FROM cell c"
                " JOIN case_key k ON k.number = c.case_key"
                " JOIN environment e ON e.number = c.environment WHERE c.id = ?");
    query_bind_int(&q, id);
    found = query_step(&q);
    if (found) {
        cell_rows_take(&q, ret_row);
    }
    if (query_end(&q, err) != ERR_OK) {
        return err->code;
    }
    return found ? ERR_OK : err_set(err, ERR_NOT_FOUND, "no cell %" PRId64, id);
}

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
