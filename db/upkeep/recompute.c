/* The second opinion on cells: the runs are summed up by SQL of its own, which shares
 * nothing with cells_fold.c.
 *
 * Runs of a cell lie scattered over the table of runs.  So what matters of them, and of
 * those that were folded, is first copied for some cells at once, in the order of that
 * table: each is read once. */
#include "db/upkeep/recompute.h"

#include <stdlib.h>

#include "daemon/base/mem.h"
#include "db/cells.h"
#include "db/cells_judge.h"
#include "db/cells_rows.h"
#include "db/dissent/device_states.h"
#include "db/tx.h"
#include "db/upkeep/recompute_sums.h"

enum { RUNS_AT_ONCE = 20000 };

/* Row of `seen`: runs that are alike, mostly one; `ids` are those of summary `number`, 0
 * for a run that has its own row. */
#define SEEN_COLUMNS                                                                     \
    "cell, id, number, runs, ids, last_id, outcome, device, options, state, is_alike, "  \
    "start_ms,"                                                                          \
    " finished_ms, iterations, distinct_digests, digest, claim, circumstances, min_ns,"  \
    " max_ns, median_ns, times, check_state, check_digest, share_ppm, words"
#define IS_ALIKE                                                                         \
    "(i.subject = c.subject AND i.subject_name = c.subject_name AND"                     \
    " (" HAS_REFERENCE("i") ") = c.has_reference)"

enum err_code recompute_prepare(struct tx *tx, struct err *err)
{
    return tx_run(tx, err,
                  "CREATE TEMP TABLE IF NOT EXISTS chosen (cell INTEGER PRIMARY KEY)") ==
                   ERR_OK
               ? tx_run(tx, err,
                        "CREATE TEMP TABLE IF NOT EXISTS seen (" SEEN_COLUMNS
                        ", PRIMARY KEY (cell, id, number)) WITHOUT ROWID")
               : err->code;
}

static enum err_code empty_tables(struct tx *tx, struct err *err)
{
    if (recompute_prepare(tx, err) != ERR_OK ||
        tx_run(tx, err, "DELETE FROM temp.chosen") != ERR_OK) {
        return err->code;
    }
    return tx_run(tx, err, "DELETE FROM temp.seen");
}

static enum err_code copy_runs(struct tx *tx, struct err *err)
{
    return tx_run(
        tx, err,
        "INSERT INTO temp.seen (" SEEN_COLUMNS
        ") WITH x (id) AS MATERIALIZED (SELECT r.id FROM temp.chosen h"
        " CROSS JOIN run r INDEXED BY run_cell ON r.cell = h.cell ORDER BY 1)"
        " SELECT r.cell, r.id, 0, 1, NULL, r.id, r.outcome, r.device, i.options,"
        " " DEVICE_STATE_OF(
            "r.device",
            "r.id") ", " IS_ALIKE
                    ", ifnull(r.started_ms, r.intent_ms), r.finished_ms,"
                    " r.iterations, r.distinct_digests, r.digest, r.claim,"
                    " r.circumstances, r.min_ns, r.max_ns, r.median_ns, NULL, k.state,"
                    " k.digest, k.share_ppm, k.words"
                    " FROM x CROSS JOIN run r ON r.id = x.id"
                    " CROSS JOIN job_item i ON i.job = r.job AND i.seq = r.item"
                    " CROSS JOIN cell c ON c.id = r.cell"
                    " LEFT JOIN run_check k ON k.run = r.id"
                    " WHERE r.outcome IS NOT NULL");
}

static enum err_code copy_summaries(struct tx *tx, struct err *err)
{
    return tx_run(
        tx, err,
        "INSERT INTO temp.seen (" SEEN_COLUMNS
        ") SELECT s.cell, s.first_run, s.number, s.runs, s.ids, s.last_run,"
        " iif(s.refused, 'invalid', 'completed'), i.device, i.options,"
        " " DEVICE_STATE_OF(
            "i.device",
            "s.first_run") ", " IS_ALIKE
                           ", s.first_ms, s.last_ms, s.iterations, 1, s.digest,"
                           " s.claim, s.circumstances, s.min_ns, s.max_ns, "
                           "s.median_ns_sum,"
                           " s.times, NULL, NULL, NULL, NULL"
                           " FROM temp.chosen h CROSS JOIN run_summary s ON s.cell = "
                           "h.cell"
                           " CROSS JOIN job_item i ON i.job = s.job AND i.seq = s.item"
                           " CROSS JOIN cell c ON c.id = s.cell");
}

#define COMPARE_INTEGER(column, member, what)                                            \
    recompute_report(r, what, r->stored.member, r->fresh.member);
#define COMPARE_TEXT(column, member, what)                                               \
    recompute_report_text(r, what, r->stored.member, r->fresh.member);

static void compare(struct recompute *r, const struct judgement *judgement)
{
    const struct cell *stored = &r->stored.cell;

    CELL_INTEGERS(COMPARE_INTEGER)
    CELL_TEXTS(COMPARE_TEXT)
    recompute_report_text(r, "verdict", verdict_name(stored->verdict),
                          verdict_name(judgement->verdict));
    recompute_report_text(r, "reason", stored->reason, judgement->reason);
    recompute_report(r, "control last varied", stored->vouched_ms, judgement->vouched_ms);
    recompute_report_text(r, "agreement of devices",
                          dissent_state_name(stored->agreement),
                          dissent_state_name(judgement->agreement));
    recompute_report_text(r, "verdict of those that agree",
                          verdict_name(stored->agreeing.verdict),
                          verdict_name(judgement->agreeing.verdict));
    recompute_report(r, "devices that agree", stored->agreeing.devices,
                     judgement->agreeing.devices);
    recompute_report(r, "runs of those that agree", stored->agreeing.runs,
                     judgement->agreeing.runs);
    recompute_report(r, "iterations of those that agree", stored->agreeing.iterations,
                     judgement->agreeing.iterations);
}

/* With the sums in r->fresh: what they are judged to be, and whether all is as stored. */
static enum err_code compare_all(struct recompute *r, struct err *err)
{
    struct judgement judgement;

    if (cell_rows_judge(r->tx, &r->fresh, &judgement, err) != ERR_OK) {
        return err->code;
    }
    compare(r, &judgement);
    return ERR_OK;
}

/* A cell of the list, and whether it has to be summed up. */
struct candidate {
    struct mark mark;
    bool trusted;
};

static enum err_code recompute_one(struct recompute *r, const struct recompute_how *how,
                                   const struct candidate *candidate,
                                   struct recomputed *counts, struct err *err)
{
    if (cell_rows_load(r->tx, candidate->mark.cell, &r->stored, err) != ERR_OK) {
        return err->code == ERR_NOT_FOUND ? ERR_OK : err->code;
    }
    r->fresh = r->stored;
    r->differing = false;
    if ((!candidate->trusted && recompute_sum_up(r, err) != ERR_OK) ||
        compare_all(r, err) != ERR_OK) {
        return err->code;
    }
    counts->compared++;
    counts->trusted += candidate->trusted;
    counts->differing += r->differing;
    if (!r->differing && !candidate->trusted && how->right) {
        how->right(how->right_arg, &candidate->mark);
    }
    return ERR_OK;
}

/* Chooses candidates until their runs are many; returns in ret_count how many. */
static enum err_code choose(struct recompute *r, const struct recompute_how *how,
                            const int64_t *ids, int count, struct candidate *candidates,
                            int *ret_count, struct err *err)
{
    int64_t most = how->runs_at_once ? how->runs_at_once : RUNS_AT_ONCE;
    int64_t chosen = 0;
    int n = 0;

    while (n < count && chosen < most) {
        struct candidate *c = &candidates[n];
        int64_t runs = 0;

        if (marks_read(r->tx, ids[n], how->trusted_since_ms, &c->mark, &c->trusted,
                       err) != ERR_OK ||
            (!c->trusted && (tx_run(r->tx, err, "INSERT INTO temp.chosen VALUES (?)",
                                    ids[n]) != ERR_OK ||
                             tx_fetch_int(r->tx, &runs, err,
                                          "SELECT count(*) FROM run INDEXED BY run_cell"
                                          " WHERE cell = ?",
                                          ids[n]) != ERR_OK))) {
            return err->code;
        }
        chosen += runs;
        n++;
    }
    *ret_count = n;
    return ERR_OK;
}

static bool is_stopped(const struct recompute_how *how)
{
    return how->stop && atomic_load(how->stop);
}

/* The first few of COUNT > 0 cells; returns in ret_done how many. */
static enum err_code recompute_some(struct recompute *r, const struct recompute_how *how,
                                    const int64_t *ids, int count,
                                    struct candidate *candidates,
                                    struct recomputed *counts, int *ret_done,
                                    struct err *err)
{
    if (empty_tables(r->tx, err) != ERR_OK ||
        choose(r, how, ids, count, candidates, ret_done, err) != ERR_OK ||
        copy_runs(r->tx, err) != ERR_OK || copy_summaries(r->tx, err) != ERR_OK) {
        return err->code;
    }
    for (int i = 0; i < *ret_done; i++) {
        if (is_stopped(how)) {
            return err_set(err, ERR_TIMEOUT, "stopped");
        }
        if (recompute_one(r, how, &candidates[i], counts, err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

enum err_code recompute_cells(struct tx *tx, const struct recompute_how *how,
                              const int64_t *ids, int count, struct recomputed *counts,
                              struct err *err)
{
    struct recompute *r = xcalloc(1, sizeof *r);
    struct candidate *candidates = xcalloc((size_t)count + 1, sizeof *candidates);
    enum err_code code = ERR_OK;

    r->tx = tx;
    r->differs = how->differs;
    r->arg = how->arg;
    for (int done = 0; code == ERR_OK && done < count;) {
        int some = 0;

        code = recompute_some(r, how, ids + done, count - done, candidates, counts, &some,
                              err);
        done += some;
    }
    free(candidates);
    free(r);
    return code;
}

enum err_code recompute_list(struct tx *tx, int64_t **ret_ids, int *ret_count,
                             struct err *err)
{
    struct query q;

    *ret_ids = NULL;
    *ret_count = 0;
    query_begin(&q, tx, "SELECT id FROM cell ORDER BY id");
    while (query_step(&q)) {
        *ret_ids = xgrow(*ret_ids, *ret_count, sizeof **ret_ids);
        (*ret_ids)[(*ret_count)++] = query_take_int(&q);
    }
    return query_end(&q, err);
}

enum err_code cells_recompute(struct tx *tx,
                              void (*differs)(void *arg, int64_t cell, const char *what),
                              void *arg, int64_t *ret_compared, int64_t *ret_differing,
                              struct err *err)
{
    const struct recompute_how how = { .trusted_since_ms = INT64_MAX,
                                       .differs = differs,
                                       .arg = arg };
    struct recomputed counts = { 0 };
    int64_t *ids;
    int count;
    enum err_code code = recompute_list(tx, &ids, &count, err);

    if (code == ERR_OK) {
        code = recompute_cells(tx, &how, ids, count, &counts, err);
    }
    free(ids);
    *ret_compared = counts.compared;
    *ret_differing = counts.differing;
    return code;
}
