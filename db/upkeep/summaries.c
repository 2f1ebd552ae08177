#include "db/upkeep/summaries.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "db/tx.h"

#define SUMMARIES                                                                        \
    "SELECT s.number, s.cell, j.id, s.item, s.runs, s.first_run, s.last_run, "           \
    "s.first_ms,"                                                                        \
    " s.last_ms, s.iterations, i.device, i.options, s.digest, s.input_digest,"           \
    " s.weight_sum, s.loss, s.algorithm, s.claim, s.circumstances,"                      \
    " json_extract(s.circumstances, '$.contention') IS NOT NULL,"                        \
    " s.min_ns, s.max_ns, s.median_ns_sum, s.refused, s.folded_ms, s.sum IS NOT " SUMMARY_SUM_OF("s.", "s.refused") " FROM run_summary s"    \
    " CROSS JOIN job j ON j.number = s.job"                                              \
    " CROSS JOIN job_item i ON i.job = s.job AND i.seq = s.item"

static void take(struct query *q, struct run_summary *ret)
{
    memset(ret->times, 0, sizeof ret->times);
    query_take(q, &ret->number, &ret->cell, ret->job, &ret->item, &ret->runs,
               ret->first_run, ret->last_run, &ret->first_ms, &ret->last_ms,
               &ret->iterations, ret->device, ret->options);
    query_take(q, ret->digest, ret->input_digest, ret->weight_sum, ret->loss,
               ret->algorithm, ret->claim, ret->circumstances, &ret->contended,
               &ret->min_ns, &ret->max_ns, &ret->median_ns_sum, &ret->refused,
               &ret->folded_ms, &ret->damaged);
}

static enum err_code take_times(struct tx *tx, struct run_summary *s, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT CAST(t.key AS INTEGER), t.value FROM run_summary s,"
                " json_each(s.times) t WHERE s.number = ?",
                s->number);
    while (query_step(&q)) {
        int64_t bucket = query_take_int(&q);

        /* A damaged file may hold any bucket. */
        s->times[bucket >= 0 && bucket < TIMES_BUCKETS ? bucket : TIMES_BUCKETS - 1] +=
            query_take_int(&q);
    }
    return query_end(&q, err);
}

enum err_code summaries_each(struct tx *tx, int64_t cell,
                             void (*visit)(void *arg, const struct run_summary *summary),
                             void *arg, struct err *err)
{
    enum err_code code = ERR_OK;
    struct query q;

    query_begin(&q, tx, SUMMARIES " WHERE s.cell = ? ORDER BY s.number", cell);
    while (code == ERR_OK && query_step(&q)) {
        struct run_summary summary;

        take(&q, &summary);
        code = take_times(tx, &summary, err);
        if (code == ERR_OK) {
            visit(arg, &summary);
        }
    }
    return query_close(&q, code, err);
}

enum err_code summaries_each_of_job(struct tx *tx, const char *job,
                                    void (*visit)(void *arg,
                                                  const struct run_summary *summary),
                                    void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                SUMMARIES
                " WHERE s.job = (SELECT number FROM job WHERE id = ?)"
                " ORDER BY s.item, s.number",
                job);
    while (query_step(&q)) {
        struct run_summary summary;

        take(&q, &summary);
        visit(arg, &summary);
    }
    return query_end(&q, err);
}

/* Of summary s: its place'th id, from 0. */
#define ID_AT(place) "substr(s.ids, 26 * " place " + 1, 26)"
#define PLACES                                                                           \
    "WITH RECURSIVE place (n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM place"          \
    " WHERE n + 1 < s.runs)"

enum err_code summaries_find(struct tx *tx, const char *id,
                             struct run_summary *ret_summary, struct err *err)
{
    struct query q;
    bool found;

    query_begin(&q, tx,
                SUMMARIES
                " WHERE s.number = (SELECT s.number FROM run_summary s"
                " INDEXED BY run_summary_span"
                " WHERE s.last_run >= ?1 AND s.first_run <= ?1"
                " AND EXISTS (" PLACES
                " SELECT 1 FROM place"
                " WHERE " ID_AT("n") " = CAST(?1 AS BLOB)) LIMIT 1)",
                id);
    found = query_step(&q);
    if (found) {
        take(&q, ret_summary);
    }
    if (query_end(&q, err) != ERR_OK) {
        return err->code;
    }
    return found ? ERR_OK : err_set(err, ERR_NOT_FOUND, "no summary has run %s", id);
}

enum err_code summaries_explain(struct tx *tx, const char *id, struct err *err)
{
    struct run_summary *s = xcalloc(1, sizeof *s);
    enum err_code code = summaries_find(tx, id, s, err);
    char first[CLOCK_RFC3339_SIZE], last[CLOCK_RFC3339_SIZE];

    if (code == ERR_OK) {
        clock_rfc3339(s->first_ms, first);
        clock_rfc3339(s->last_ms, last);
        code = err_set(
            err, ERR_GONE,
            "run %s is old and was folded: it is one of %" PRId64
            " runs of job %s and cell %" PRId64 " that were alike (digest %s, %" PRId64
            " iterations together, %s, from %s to %s); they count as before "
            "(retention_days and retention_runs of the configuration)",
            id, s->runs, s->job, s->cell, s->digest, s->iterations,
            s->refused ? "invalid for their inputs" : "completed", first, last);
    } else if (code == ERR_NOT_FOUND) {
        err_set(err, ERR_NOT_FOUND, "no run %s", id);
    }
    free(s);
    return code;
}

enum err_code summaries_count(struct tx *tx, const char *job, int64_t cell,
                              int64_t *ret_runs, struct err *err)
{
    *ret_runs = 0;
    return cell ? tx_fetch_int(tx, ret_runs, err,
                               "SELECT ifnull(sum(runs), 0) FROM run_summary"
                               " WHERE cell = ?1 AND (?2 IS NULL OR job ="
                               " (SELECT number FROM job WHERE id = ?2))",
                               cell, or_null(job))
                : tx_fetch_int(tx, ret_runs, err,
                               "SELECT ifnull(sum(runs), 0) FROM run_summary"
                               " WHERE job = (SELECT number FROM job WHERE id = ?)",
                               job);
}

/* Mostly all of them, or none, are later: only where not, they are looked at. */
enum err_code summaries_count_since(struct tx *tx, int64_t cell, const char *id,
                                    int64_t *ret_runs, struct err *err)
{
    *ret_runs = 0;
    return tx_fetch_int(tx, ret_runs, err,
                        "SELECT ifnull(sum(CASE WHEN s.first_run > ?2 THEN s.runs"
                        " WHEN s.last_run <= ?2 THEN 0 ELSE (" PLACES
                        " SELECT count(*) FROM place WHERE " ID_AT("n")
                        " > CAST(?2 AS BLOB)) END), 0)"
                        " FROM run_summary s WHERE s.cell = ?1 AND NOT s.refused",
                        cell, id);
}

/* A run that were there twice would count twice. */
enum err_code summaries_check(struct tx *tx, void (*report)(void *arg, const char *line),
                              void *arg, int64_t *ret_wrong, struct err *err)
{
    struct query q;

    *ret_wrong = 0;
    query_begin(&q, tx,
                "SELECT s.number FROM run_summary s CROSS JOIN cell c ON c.id = s.cell"
                " CROSS JOIN job_item i ON i.job = s.job AND i.seq = s.item"
                " WHERE i.case_key <> c.case_key OR EXISTS (" PLACES
                " SELECT 1 FROM place WHERE (n > 0 AND " ID_AT("n") " <= " ID_AT("(n - 1)")
                ") OR EXISTS (SELECT 1 FROM run WHERE id = CAST(" ID_AT("n")
                " AS TEXT)))");
    while (query_step(&q)) {
        char line[96];

        snprintf(line, sizeof line,
                 "summary %" PRId64
                 ": it is not of its case, or has "
                 "runs twice",
                 query_take_int(&q));
        ++*ret_wrong;
        report(arg, line);
    }
    return query_end(&q, err);
}
