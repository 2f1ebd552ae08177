#include "db/upkeep/recompute_sums.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "db/case_keys.h"
#include "db/cases/algorithms.h"
#include "db/cells.h"
#include "db/cells_judge.h"
#include "db/dissent/cell_devices.h"
#include "db/tx.h"

void recompute_report(struct recompute *r, const char *what, int64_t stored,
                      int64_t fresh)
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

void recompute_report_text(struct recompute *r, const char *what, const char *stored,
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
    query_begin(
        &q, r->tx,
        "SELECT outcome, sum(runs) FROM temp.seen WHERE cell = ? GROUP BY outcome",
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

    query_begin(
        &q, r->tx,
        "SELECT ifnull(max(last_id) FILTER (WHERE outcome IN ('timeout', 'crashed',"
        " 'out_of_memory', 'invalid')), ''),"
        " min(start_ms), max(finished_ms),"
        " sum(iterations) FILTER (WHERE outcome = 'completed'),"
        " count(DISTINCT device) FILTER (WHERE outcome = 'completed'),"
        " max(finished_ms) FILTER (WHERE outcome = 'completed'),"
        " min(min_ns) FILTER (WHERE " TIMED "), max(max_ns) FILTER (WHERE " TIMED
        "), sum(median_ns) FILTER (WHERE " TIMED
        "),"
        " sum(runs) FILTER (WHERE outcome = 'completed'"
        " AND circumstances IS NOT NULL),"
        " sum(runs) FILTER (WHERE outcome = 'completed'"
        " AND json_extract(circumstances, '$.contention') IS NOT NULL),"
        " sum(runs) FILTER (WHERE outcome = 'completed'"
        " AND claim = 'deterministic'),"
        " sum(runs) FILTER (WHERE outcome = 'completed'"
        " AND claim = 'non-deterministic')"
        " FROM temp.seen WHERE cell = ?",
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
                "WITH k (run, state, digest, share_ppm, words) AS (SELECT id,"
                " check_state, check_digest, share_ppm, words FROM temp.seen"
                " WHERE cell = ? AND check_state IS NOT NULL"
                " AND (outcome = 'completed' OR check_state = 'cut_off'))"
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

/* The first challenge that was ignored comes last here. */
static enum err_code count_challenges(struct recompute *r, struct err *err)
{
    struct challenges *c = &r->fresh.cell.evidence.challenges;
    struct inputs inputs;
    int64_t siblings = 0;
    struct query q;

    if (tx_fetch_int(r->tx, &siblings, err,
                     "SELECT siblings FROM case_key WHERE number = ?",
                     r->stored.case_key) != ERR_OK ||
        case_inputs_load(r->tx, siblings, &inputs, err) != ERR_OK) {
        return err->code;
    }
    *c = (struct challenges){ .passed = 0 };
    query_begin(&q, r->tx,
                "WITH own (digest) AS (SELECT digest FROM temp.seen WHERE cell = ?1"
                " AND outcome = 'completed' UNION SELECT d.digest FROM temp.seen r"
                " CROSS JOIN run_digest d ON d.run = r.id WHERE r.cell = ?1"
                " AND r.outcome = 'completed' AND r.distinct_digests > 1)"
                " SELECT r.id, r.outcome = 'completed' OR r.refused,"
                " r.outcome NOT IN ('lost', 'infra', 'cancelled'), r.input_digest,"
                " r.digest IN own OR EXISTS (SELECT digest FROM run_digest"
                " WHERE run = r.id INTERSECT SELECT digest FROM own)"
                " FROM run r WHERE r.challenged = ?1 AND r.outcome IS NOT NULL"
                " ORDER BY r.id DESC",
                r->stored.cell.id);
    while (query_step(&q)) {
        char id[ID_SIZE];
        char digest[DIGEST_TEXT_SIZE];
        bool completed, answered, repeated;
        bool unchanged;

        query_take(&q, id, &completed, &answered, digest, &repeated);
        unchanged = strcmp(digest, inputs.digest) == 0; /* what completed has one */
        if (!completed) {
            c->failed += answered;
        } else if (unchanged) {
            c->unchanged++;
            copy_text(c->run, sizeof c->run, id);
        } else if (repeated) {
            c->repeated++;
            if (c->unchanged == 0) {
                copy_text(c->run, sizeof c->run, id);
            }
        } else {
            c->passed++;
        }
    }
    return query_end(&q, err);
}

static enum err_code count_since_failure(struct recompute *r, struct err *err)
{
    return tx_fetch_int(
        r->tx, &r->fresh.cell.evidence.completed_since_failure, err,
        "SELECT ifnull(sum(iif(id > ?2, runs, (WITH RECURSIVE place (n) AS (VALUES (0)"
        " UNION ALL SELECT n + 1 FROM place WHERE n + 1 < s.runs)"
        " SELECT count(*) FROM place"
        " WHERE CAST(substr(s.ids, 26 * n + 1, 26) AS TEXT) > ?2))), 0)"
        " FROM temp.seen s WHERE cell = ?1 AND last_id > ?2 AND outcome = 'completed'",
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
                "WITH shown (digest, runs, iterations, is_first, is_only) AS ("
                " SELECT digest, runs, iterations, 1, 1 FROM temp.seen WHERE cell = ?1"
                " AND outcome = 'completed' AND distinct_digests = 1"
                " UNION ALL SELECT d.digest, 1, d.iterations, d.first_iteration = 0, 0"
                " FROM temp.seen r CROSS JOIN run_digest d ON d.run = r.id"
                " WHERE r.cell = ?1"
                " AND r.outcome = 'completed' AND r.distinct_digests > 1),"
                " fresh (digest, runs, iterations, first_runs, only_runs) AS ("
                " SELECT digest, sum(runs), sum(iterations), sum(is_first * runs),"
                " sum(is_only * runs) FROM shown GROUP BY digest),"
                " checked (digest, state) AS MATERIALIZED (SELECT check_digest,"
                " min(check_state) FROM temp.seen WHERE cell = ?1"
                " AND check_digest IS NOT NULL AND outcome = 'completed' GROUP BY 1)"
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
        recompute_report(r, "runs of a digest", query_take_int(&q), n.runs);
        recompute_report(r, "iterations of a digest", query_take_int(&q), n.iterations);
        recompute_report(r, "runs that began with a digest", query_take_int(&q),
                         n.first_runs);
        recompute_report(r, "runs of nothing but a digest", query_take_int(&q),
                         n.only_runs);
        query_take(&q, stored, fresh);
        recompute_report_text(r, "check of a digest", stored, fresh);
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
        recompute_report(r, "rows of digests", query_take_int(&q),
                         r->fresh.cell.evidence.distinct_digests);
    }
    return query_end(&q, err);
}

/* What runs under the same conditions add up to, by device and over all devices, each as
 * one text: what is in one and not in the other is seen. */
#define CONDITIONS_TEXT                                                                  \
    "ifnull(group_concat(runs || ' ' || ifnull(digest, 'varied ' || varied_ms) || ' ' "  \
    "|| device || ' ' || options || ' ' || state, '; '), '')"
#define CONDITIONS_ROWS                                                                  \
    " SELECT cell, device, options, state, runs, digest, varied_ms FROM cell_device"     \
    " WHERE cell = ?1 UNION ALL SELECT cell, '', options, '', runs, iif(varied, NULL, "  \
    "''),"                                                                               \
    " varied_ms FROM cell_alike WHERE cell = ?1"

/* Of each device and its conditions, the latest end of a run with each of its digests;
 * the second of these is when it last varied. */
#define LATEST_ENDS                                                                      \
    " shown (device, options, state, digest, ms) AS ("                                   \
    " SELECT device, options, state, digest, finished_ms FROM temp.seen"                 \
    " WHERE cell = ?1 AND outcome = 'completed'"                                         \
    " UNION ALL SELECT r.device, r.options, r.state, d.digest, r.finished_ms FROM "      \
    "temp.seen r"                                                                        \
    " CROSS JOIN run_digest d ON d.run = r.id WHERE r.cell = ?1"                         \
    " AND r.outcome = 'completed' AND r.distinct_digests > 1),"                          \
    " latest (device, options, state, ms, place) AS (SELECT device, options, state, "    \
    "max(ms),"                                                                           \
    " row_number() OVER (PARTITION BY device, options, state ORDER BY max(ms) DESC)"     \
    " FROM shown GROUP BY device, options, state, digest),"

static enum err_code compare_conditions(struct recompute *r, struct err *err)
{
    struct query q;

    query_begin(
        &q, r->tx,
        "WITH" LATEST_ENDS
        " fresh_device (cell, device, options, state, runs, digest, varied_ms) AS "
        "MATERIALIZED ("
        " SELECT g.cell, g.device, g.options, g.state, g.runs, g.digest, ifnull(l.ms, 0)"
        " FROM (SELECT r.cell, r.device, r.options, r.state, sum(r.runs) AS runs,"
        " iif(max(r.distinct_digests) = 1 AND min(r.digest) = max(r.digest),"
        " min(r.digest), NULL) AS digest"
        " FROM temp.seen r WHERE r.cell = ?1 AND r.outcome = 'completed'"
        " GROUP BY r.device, r.options, r.state) g LEFT JOIN latest l"
        " ON l.device = g.device AND l.options = g.options AND l.state = g.state"
        " AND l.place = 2),"
        " fresh (cell, device, options, state, runs, digest, varied_ms) AS ("
        " SELECT * FROM fresh_device UNION ALL"
        " SELECT cell, '', options, '', sum(runs), iif(max(digest IS NULL), NULL, ''),"
        " max(varied_ms)"
        " FROM fresh_device GROUP BY options),"
        " stored (cell, device, options, state, runs, digest, varied_ms) AS "
        "(" CONDITIONS_ROWS
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
        recompute_report_text(r, "runs under the same conditions", stored, fresh);
    }
    return query_end(&q, err);
}

/* All runs of a cell are of its subject, since what a model earned is no library's, and
 * have a reference or not as it does. */
static enum err_code compare_subjects(struct recompute *r, struct err *err)
{
    int64_t others = 0;

    if (tx_fetch_int(r->tx, &others, err,
                     "SELECT ifnull(sum(runs), 0) FROM temp.seen WHERE cell = ?"
                     " AND NOT is_alike",
                     r->stored.cell.id) != ERR_OK) {
        return err->code;
    }
    recompute_report(r, "runs of another subject, or of another kind of stack", 0,
                     others);
    return ERR_OK;
}

static enum err_code recount_times(struct recompute *r, int64_t *ret_counts,
                                   struct err *err)
{
    struct query q;

    memset(ret_counts, 0, TIMES_BUCKETS * sizeof *ret_counts);
    query_begin(&q, r->tx,
                "SELECT median_ns, 0, runs FROM temp.seen WHERE cell = ?1"
                " AND " TIMED
                " AND times IS NULL AND median_ns > 0"
                " UNION ALL SELECT NULL, CAST(t.key AS INTEGER), t.value"
                " FROM temp.seen s, json_each(s.times) t WHERE s.cell = ?1 AND " TIMED,
                r->stored.cell.id);
    while (query_step(&q)) {
        int64_t median_ns = query_take_int(&q);
        int64_t bucket = query_take_int(&q);

        bucket = median_ns ? times_bucket(median_ns) : bucket;
        ret_counts[bucket >= 0 && bucket < TIMES_BUCKETS ? bucket : TIMES_BUCKETS - 1] +=
            query_take_int(&q);
    }
    return query_end(&q, err);
}

static enum err_code compare_times(struct recompute *r, struct err *err)
{
    int64_t stored[TIMES_BUCKETS];
    int64_t fresh[TIMES_BUCKETS];

    if (cells_times_stored(r->tx, r->stored.cell.id, stored, err) != ERR_OK ||
        recount_times(r, fresh, err) != ERR_OK) {
        return err->code;
    }
    for (int b = 0; b < TIMES_BUCKETS; b++) {
        if (stored[b] != fresh[b]) {
            char what[64];

            snprintf(what, sizeof what, "runs of about %" PRId64 " ns", times_middle(b));
            recompute_report(r, what, stored[b], fresh[b]);
        }
    }
    return ERR_OK;
}

static void rows_differ(void *arg, const char *what, const char *stored,
                        const char *fresh)
{
    recompute_report_text(arg, what, stored, fresh);
}

enum err_code recompute_sum_up(struct recompute *r, struct err *err)
{
    if (count_outcomes(r, err) != ERR_OK || sum_runs(r, err) != ERR_OK ||
        count_checks(r, err) != ERR_OK || count_challenges(r, err) != ERR_OK ||
        count_since_failure(r, err) != ERR_OK || compare_digests(r, err) != ERR_OK ||
        count_rows(r, err) != ERR_OK || compare_conditions(r, err) != ERR_OK ||
        compare_times(r, err) != ERR_OK || compare_subjects(r, err) != ERR_OK ||
        cell_devices_recompute(r->tx, r->stored.cell.id, rows_differ, r, err) != ERR_OK ||
        cell_algorithms_recompute(r->tx, r->stored.cell.id, rows_differ, r, err) !=
            ERR_OK) {
        return err->code;
    }
    return ERR_OK;
}
