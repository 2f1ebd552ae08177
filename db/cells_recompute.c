/* The second opinion on cells (cells_recompute of db/cells.h): the runs are summed up by
 * SQL of its own, which shares nothing with cells_fold.c. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "db/cells.h"
#include "db/cells_judge.h"
#include "db/cells_rows.h"
#include "db/tx.h"

struct recompute {
    struct tx *tx;
    void (*differs)(void *arg, int64_t cell, const char *what);
    void *arg;
    struct cell_row stored;
    struct cell_row fresh;
    bool differing;
};

static void report(struct recompute *r, const char *what, int64_t stored, int64_t fresh)
{
    char line[160];

    if (stored == fresh) {
        return;
    }
    snprintf(line, sizeof line, "%s: stored %" PRId64 ", the runs give %" PRId64, what,
             stored, fresh);
    r->differing = true;
    r->differs(r->arg, r->stored.cell.id, line);
}

static void report_text(struct recompute *r, const char *what, const char *stored,
                        const char *fresh)
{
    char line[2 * VERDICT_REASON_SIZE + 80];

    if (strcmp(stored, fresh) == 0) {
        return;
    }
    snprintf(line, sizeof line, "%s: stored \"%s\", the runs give \"%s\"", what, stored,
             fresh);
    r->differing = true;
    r->differs(r->arg, r->stored.cell.id, line);
}

static enum err_code count_outcomes(struct recompute *r, struct err *err)
{
    struct evidence *e = &r->fresh.cell.evidence;
    struct query q;

    memset(e->runs, 0, sizeof e->runs);
    query_begin(&q, r->tx,
                "SELECT outcome, count(*) FROM run WHERE cell = ? AND outcome IS NOT NULL"
                " GROUP BY outcome",
                r->stored.cell.id);
    while (query_step(&q)) {
        enum outcome outcome;

        if (outcome_parse(query_borrow_text(&q), &outcome) == 0) {
            e->runs[outcome] = query_take_int(&q);
        }
    }
    return query_end(&q, err);
}

#define TIMED "outcome = 'completed' AND circumstances IS NULL"

static enum err_code sum_runs(struct recompute *r, struct err *err)
{
    struct cell_row *f = &r->fresh;
    struct query q;

    query_begin(&q, r->tx,
                "SELECT ifnull(max(id) FILTER (WHERE outcome IN ('timeout', 'crashed',"
                " 'out_of_memory', 'invalid')), ''),"
                " min(ifnull(started_ms, intent_ms)), max(finished_ms),"
                " sum(iterations) FILTER (WHERE outcome = 'completed'),"
                " count(DISTINCT device) FILTER (WHERE outcome = 'completed'),"
                " max(finished_ms) FILTER (WHERE outcome = 'completed'),"
                " min(min_ns) FILTER (WHERE " TIMED "), max(max_ns) FILTER (WHERE " TIMED
                "), sum(median_ns) FILTER (WHERE " TIMED
                "),"
                " count(circumstances) FILTER (WHERE outcome = 'completed'),"
                " count(json_extract(circumstances, '$.contention'))"
                " FILTER (WHERE outcome = 'completed'),"
                " count(*) FILTER (WHERE outcome = 'completed'"
                " AND claim = 'deterministic'),"
                " count(*) FILTER (WHERE outcome = 'completed'"
                " AND claim = 'non-deterministic')"
                " FROM run WHERE cell = ? AND outcome IS NOT NULL",
                r->stored.cell.id);
    if (query_step(&q)) {
        query_take(&q, f->last_failed_run, &f->cell.first_ms, &f->cell.last_ms,
                   &f->cell.evidence.iterations, &f->cell.evidence.devices,
                   &f->cell.evidence.last_completed_ms, &f->cell.min_ns, &f->cell.max_ns,
                   &f->cell.median_ns_sum, &f->cell.evidence.disturbed,
                   &f->cell.evidence.contended, &f->cell.evidence.claimed,
                   &f->cell.evidence.warned);
    }
    return query_end(&q, err);
}

static enum err_code count_checks(struct recompute *r, struct err *err)
{
    struct checks *checks = &r->fresh.cell.evidence.checks;
    struct query q;

    query_begin(&q, r->tx,
                "WITH k (run, state, digest, share_ppm, words) AS (SELECT k.run, k.state,"
                " k.digest, k.share_ppm, k.words FROM run r JOIN run_check k"
                " ON k.run = r.id WHERE r.cell = ?"
                " AND (r.outcome = 'completed' OR k.state = 'cut_off'))"
                " SELECT count(*) FILTER (WHERE state = 'passed'),"
                " count(*) FILTER (WHERE state = 'failed'),"
                " count(*) FILTER (WHERE state = 'given_up'),"
                " count(*) FILTER (WHERE state = 'asked'),"
                " count(*) FILTER (WHERE state = 'cut_off'),"
                " (SELECT count(*) FROM (SELECT digest FROM k WHERE state = 'passed'"
                " EXCEPT SELECT digest FROM k WHERE state = 'failed')),"
                " max(share_ppm) FILTER (WHERE state = 'passed'),"
                " min(run) FILTER (WHERE state = 'failed'),"
                " (SELECT words FROM k WHERE state = 'failed' ORDER BY run LIMIT 1)"
                " FROM k",
                r->stored.cell.id);
    if (query_step(&q)) {
        query_take(&q, &checks->passed, &checks->failed, &checks->given_up,
                   &checks->unanswered, &checks->cut_off, &checks->digests_passed,
                   &checks->share_ppm, r->fresh.failed_check, checks->failed_words);
    }
    return query_end(&q, err);
}

static enum err_code count_since_failure(struct recompute *r, struct err *err)
{
    return tx_fetch_int(r->tx, &r->fresh.cell.evidence.completed_since_failure, err,
                        "SELECT count(*) FROM run WHERE cell = ? AND id > ?"
                        " AND outcome = 'completed'",
                        r->stored.cell.id, r->fresh.last_failed_run);
}

/* Every digest that the runs give, most frequent first, with what is stored of it. */
static enum err_code compare_digests(struct recompute *r, struct err *err)
{
    struct cell_row *f = &r->fresh;
    struct query q;

    f->cell.digest[0] = '\0';
    f->cell.digest_counts = (struct digest_counts){ 0 };
    f->cell.evidence.distinct_digests = 0;
    query_begin(&q, r->tx,
                "WITH shown (digest, iterations, is_first, is_only) AS ("
                " SELECT digest, iterations, 1, 1 FROM run WHERE cell = ?1"
                " AND outcome = 'completed' AND distinct_digests = 1"
                " UNION ALL SELECT d.digest, d.iterations, d.first_iteration = 0, 0"
                " FROM run r CROSS JOIN run_digest d ON d.run = r.id WHERE r.cell = ?1"
                " AND r.outcome = 'completed' AND r.distinct_digests > 1),"
                " fresh (digest, runs, iterations, first_runs, only_runs) AS ("
                " SELECT digest, count(*), sum(iterations), sum(is_first), sum(is_only)"
                " FROM shown GROUP BY digest),"
                " checked (digest, state) AS MATERIALIZED (SELECT x.digest, min(x.state)"
                " FROM run r JOIN run_check x ON x.run = r.id WHERE r.cell = ?1"
                " AND r.outcome = 'completed' GROUP BY x.digest)"
                " SELECT f.digest, f.runs, f.iterations, f.first_runs, f.only_runs,"
                " c.runs, c.iterations, c.first_runs, c.only_runs, c.checked, k.state"
                " FROM fresh f LEFT JOIN cell_digest c ON c.cell = ?1"
                " AND c.digest = f.digest LEFT JOIN checked k ON k.digest = f.digest"
                " ORDER BY f.runs DESC, f.iterations DESC,"
                " f.digest",
                r->stored.cell.id);
    while (query_step(&q)) {
        char digest[DIGEST_TEXT_SIZE];
        char stored[CASE_NAME_SIZE];
        char fresh[CASE_NAME_SIZE];
        struct digest_counts n;

        query_take(&q, digest, &n.runs, &n.iterations, &n.first_runs, &n.only_runs);
        report(r, "runs of a digest", query_take_int(&q), n.runs);
        report(r, "iterations of a digest", query_take_int(&q), n.iterations);
        report(r, "runs that began with a digest", query_take_int(&q), n.first_runs);
        report(r, "runs of nothing but a digest", query_take_int(&q), n.only_runs);
        query_take(&q, stored, fresh);
        report_text(r, "check of a digest", stored, fresh);
        if (f->cell.evidence.distinct_digests++ == 0) {
            memcpy(f->cell.digest, digest, sizeof digest);
            f->cell.digest_counts = n;
        }
    }
    return query_end(&q, err);
}

static enum err_code count_rows(struct recompute *r, struct err *err)
{
    struct query q;

    query_begin(&q, r->tx, "SELECT count(*) FROM cell_digest WHERE cell = ?",
                r->stored.cell.id);
    if (query_step(&q)) {
        report(r, "rows of digests", query_take_int(&q),
               r->fresh.cell.evidence.distinct_digests);
    }
    return query_end(&q, err);
}

/* What runs under the same conditions add up to, by device and over all devices, each as
 * one text: what is in one and not in the other is seen. */
#define CONDITIONS_TEXT                                                                  \
    "ifnull(group_concat(runs || ' ' || ifnull(digest, 'varied ' || varied_ms) || ' ' "  \
    "|| device || ' ' || options, '; '), '')"
#define CONDITIONS_ROWS                                                                  \
    " SELECT cell, device, options, runs, digest, varied_ms FROM cell_device"            \
    " WHERE cell = ?1 UNION ALL SELECT cell, '', options, runs, iif(varied, NULL, ''),"  \
    " varied_ms FROM cell_alike WHERE cell = ?1"

/* Of each device and its conditions, the latest end of a run with each of its digests;
 * the second of these is when it last varied. */
#define LATEST_ENDS                                                                      \
    " shown (device, options, digest, ms) AS ("                                          \
    " SELECT r.device, i.options, r.digest, r.finished_ms FROM run r"                    \
    " JOIN job_item i ON i.job = r.job AND i.seq = r.item"                               \
    " WHERE r.cell = ?1 AND r.outcome = 'completed'"                                     \
    " UNION ALL SELECT r.device, i.options, d.digest, r.finished_ms FROM run r"          \
    " JOIN job_item i ON i.job = r.job AND i.seq = r.item"                               \
    " JOIN run_digest d ON d.run = r.id"                                                 \
    " WHERE r.cell = ?1 AND r.outcome = 'completed'),"                                   \
    " latest (device, options, ms, place) AS (SELECT device, options, max(ms),"          \
    " row_number() OVER (PARTITION BY device, options ORDER BY max(ms) DESC)"            \
    " FROM shown GROUP BY device, options, digest),"

static enum err_code compare_conditions(struct recompute *r, struct err *err)
{
    struct query q;

    query_begin(
        &q, r->tx,
        "WITH" LATEST_ENDS
        " fresh_device (cell, device, options, runs, digest, varied_ms) AS MATERIALIZED ("
        " SELECT r.cell, r.device, i.options, count(*),"
        " iif(max(r.distinct_digests) = 1 AND min(r.digest) = max(r.digest),"
        " min(r.digest), NULL), ifnull((SELECT ms FROM latest l"
        " WHERE l.device = r.device AND l.options = i.options AND l.place = 2), 0)"
        " FROM run r JOIN job_item i ON i.job = r.job"
        " AND i.seq = r.item WHERE r.cell = ?1 AND r.outcome = 'completed'"
        " GROUP BY r.device, i.options),"
        " fresh (cell, device, options, runs, digest, varied_ms) AS ("
        " SELECT * FROM fresh_device UNION ALL"
        " SELECT cell, '', options, sum(runs), iif(max(digest IS NULL), NULL, ''),"
        " max(varied_ms)"
        " FROM fresh_device GROUP BY options),"
        " stored (cell, device, options, runs, digest, varied_ms) AS (" CONDITIONS_ROWS
        ")"
        " SELECT (SELECT " CONDITIONS_TEXT
        " FROM (SELECT * FROM stored EXCEPT"
        " SELECT * FROM fresh)), (SELECT " CONDITIONS_TEXT
        " FROM (SELECT * FROM fresh EXCEPT"
        " SELECT * FROM stored))",
        r->stored.cell.id);
    if (query_step(&q)) {
        char stored[VERDICT_REASON_SIZE];
        char fresh[VERDICT_REASON_SIZE];

        query_take(&q, stored, fresh);
        report_text(r, "runs under the same conditions", stored, fresh);
    }
    return query_end(&q, err);
}

/* All runs of a cell are of its subject, since what a model earned is no library's, and
 * have a reference or not as it does. */
static enum err_code compare_subjects(struct recompute *r, struct err *err)
{
    int64_t others = 0;

    if (tx_fetch_int(r->tx, &others, err,
                     "SELECT count(*) FROM run r JOIN job_item i ON i.job = r.job"
                     " AND i.seq = r.item JOIN cell c ON c.id = r.cell WHERE r.cell = ?"
                     " AND (i.subject <> c.subject OR i.subject_name <> c.subject_name"
                     " OR (" HAS_REFERENCE("i") ") <> c.has_reference)",
                     r->stored.cell.id) != ERR_OK) {
        return err->code;
    }
    report(r, "runs of another subject, or of another kind of stack", 0, others);
    return ERR_OK;
}

static enum err_code compare_times(struct recompute *r, struct err *err)
{
    int64_t stored[TIMES_BUCKETS];
    int64_t fresh[TIMES_BUCKETS];

    if (cells_times_stored(r->tx, r->stored.cell.id, stored, err) != ERR_OK ||
        cells_times_recount(r->tx, r->stored.cell.id, fresh, err) != ERR_OK) {
        return err->code;
    }
    for (int b = 0; b < TIMES_BUCKETS; b++) {
        if (stored[b] != fresh[b]) {
            char what[64];

            snprintf(what, sizeof what, "runs of about %" PRId64 " ns", times_middle(b));
            report(r, what, stored[b], fresh[b]);
        }
    }
    return ERR_OK;
}

#define COMPARE_INTEGER(column, member, what)                                            \
    report(r, what, r->stored.member, r->fresh.member);
#define COMPARE_TEXT(column, member, what)                                               \
    report_text(r, what, r->stored.member, r->fresh.member);

static void compare(struct recompute *r, const struct judgement *judgement)
{
    const struct cell *stored = &r->stored.cell;

    CELL_INTEGERS(COMPARE_INTEGER)
    CELL_TEXTS(COMPARE_TEXT)
    report_text(r, "verdict", verdict_name(stored->verdict),
                verdict_name(judgement->verdict));
    report_text(r, "reason", stored->reason, judgement->reason);
    report(r, "control last varied", stored->vouched_ms, judgement->vouched_ms);
}

static enum err_code recompute_one(struct recompute *r, struct err *err)
{
    struct judgement judgement;

    r->fresh = r->stored;
    r->differing = false;
    if (count_outcomes(r, err) != ERR_OK || sum_runs(r, err) != ERR_OK ||
        count_checks(r, err) != ERR_OK || count_since_failure(r, err) != ERR_OK ||
        compare_digests(r, err) != ERR_OK || count_rows(r, err) != ERR_OK ||
        compare_conditions(r, err) != ERR_OK || compare_times(r, err) != ERR_OK ||
        compare_subjects(r, err) != ERR_OK ||
        cell_rows_judge(r->tx, &r->fresh, &judgement, err) != ERR_OK) {
        return err->code;
    }
    compare(r, &judgement);
    return ERR_OK;
}

enum err_code cells_recompute(struct tx *tx,
                              void (*differs)(void *arg, int64_t cell, const char *what),
                              void *arg, int64_t *ret_compared, int64_t *ret_differing,
                              struct err *err)
{
    struct recompute r = { .tx = tx, .differs = differs, .arg = arg };
    enum err_code code = ERR_OK;
    struct query q;

    *ret_compared = 0;
    *ret_differing = 0;
    query_begin(&q, tx,
                "SELECT " CELL_ROW_COLUMNS
                " FROM cell c CROSS JOIN case_key k"
                " ON k.number = c.case_key CROSS JOIN environment e"
                " ON e.number = c.environment ORDER BY c.id");
    while (code == ERR_OK && query_step(&q)) {
        cell_rows_take(&q, &r.stored);
        code = recompute_one(&r, err);
        ++*ret_compared;
        *ret_differing += r.differing;
    }
    return query_close(&q, code, err);
}
