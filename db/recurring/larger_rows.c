#include "db/recurring/larger_rows.h"

#include "db/case_keys.h"
#include "db/tx.h"

/* As the index of jobs that were requested wants it. */
#define NEWEST_SURVEYS                                                                   \
    "(SELECT number, state, finished_ms FROM job INDEXED BY job_requested"               \
    " WHERE (priority <> 'background' OR survey = 1) AND survey = 1"                     \
    " ORDER BY id DESC LIMIT ?)"

enum err_code larger_mark_read(struct tx *tx, struct larger_mark *ret_mark,
                               struct err *err)
{
    *ret_mark = (struct larger_mark){ .ended = 0 };
    return tx_fetch(tx, TX_TARGETS(&ret_mark->ended, &ret_mark->last_ms), err,
                    "SELECT count(*), ifnull(max(finished_ms), 0) FROM " NEWEST_SURVEYS
                    " WHERE state IN ('finished', 'cancelled')",
                    LARGER_JOBS_MAX);
}

enum err_code larger_each_row(struct tx *tx,
                              void (*visit)(void *arg, const struct larger_row *row),
                              void *arg, struct err *err)
{
    struct query q;

    query_begin(
        &q, tx,
        "SELECT " CASE_KEY_COLUMNS
        ", j.number, j.state = 'finished', j.state = 'cancelled', i.device, i.stack,"
        " i.milliseconds / max(1, i.runs_answered),"
        " ifnull(CAST(d.attributes ->> '$.memory_bytes' AS INTEGER), 0)"
        " FROM " NEWEST_SURVEYS
        " AS j JOIN job_item i ON i.job = j.number"
        " JOIN case_key k ON k.number = i.case_key"
        " JOIN device d ON d.id = i.device"
        " WHERE d.backend = 'cuda' AND i.options = '' AND k.seed = 1"
        " ORDER BY j.number DESC, i.seq",
        LARGER_JOBS_MAX);
    while (query_step(&q)) {
        struct larger_row row = { .job = 0 };

        case_keys_take(&q, &row.key);
        query_take(&q, &row.job, &row.finished, &row.cancelled, row.device, row.stack,
                   &row.run_ms, &row.memory_bytes);
        visit(arg, &row);
    }
    return query_end(&q, err);
}
