/* What finished runs add to the counts of their cells (db/cells_judge.h). */
#include <string.h>

#include "daemon/base/mem.h"
#include "db/cases/algorithms.h"
#include "db/cells_judge.h"
#include "db/dissent/cell_devices.h"
#include "db/dissent/device_states.h"
#include "db/tx.h"
#include "db/upkeep/summaries.h"

enum err_code cells_place(struct tx *tx, int64_t case_key, int64_t environment,
                          int64_t job, int item, int64_t *ret_id, struct err *err)
{
    *ret_id = 0;
    if (tx_fetch_int(tx, ret_id, err,
                     "SELECT id FROM cell WHERE environment = ? AND case_key = ?",
                     environment, case_key) != ERR_OK ||
        *ret_id) {
        return *ret_id ? ERR_OK : err->code;
    }
    if (tx_fetch_int(tx, ret_id, err,
                     "INSERT INTO cell (environment, case_key, subject, subject_name,"
                     " has_reference) SELECT ?, ?, i.subject, i.subject_name,"
                     " " HAS_REFERENCE("i") " FROM job_item i WHERE i.job = ?"
                                            " AND i.seq = ? RETURNING id",
                     environment, case_key, job, item) != ERR_OK) {
        return err->code;
    }
    if (tx_run(tx, err, "UPDATE cell SET sum = reprod_sum(" CELL_SUM("") ") WHERE id = ?",
               *ret_id) != ERR_OK) {
        return err->code;
    }
    return tx_run(tx, err, "UPDATE environment SET cells = cells + 1 WHERE number = ?",
                  environment);
}

/* How often one digest was seen, and whether that makes it the most frequent.  Counts
 * only grow, so comparing at each growth finds the greatest whatever the order. */
static void prefer_digest(struct cell *cell, const char *digest,
                          const struct digest_counts *counts)
{
    const struct digest_counts *most = &cell->digest_counts;
    bool same = strcmp(digest, cell->digest) == 0;
    bool more = counts->runs != most->runs ? counts->runs > most->runs
                : counts->iterations != most->iterations
                    ? counts->iterations > most->iterations
                    : strcmp(digest, cell->digest) < 0;

    if (same || more) {
        memcpy(cell->digest, digest, sizeof cell->digest);
        cell->digest_counts = *counts;
    }
}

/* The sums are of the run's last iteration, so they belong to a digest that was seen for
 * the first time there, or always. */
static bool sums_belong(const struct run_record *run, const struct run_digest *digest)
{
    return run->distinct_digests == 1 || digest->first_iteration == run->iterations - 1;
}

/* After its row was made or counted up by RUNS. */
static enum err_code look_at_digest(struct tx *tx, struct cell_row *row,
                                    const char *digest, int64_t runs, struct err *err)
{
    struct digest_counts counts = { .runs = 0 };

    if (tx_fetch(tx,
                 TX_TARGETS(&counts.runs, &counts.iterations, &counts.first_runs,
                            &counts.only_runs),
                 err,
                 "SELECT runs, iterations, first_runs, only_runs FROM cell_digest"
                 " WHERE cell = ? AND digest = ?",
                 row->cell.id, digest) != ERR_OK) {
        return err->code;
    }
    row->cell.evidence.distinct_digests += counts.runs == runs;
    prefer_digest(&row->cell, digest, &counts);
    return ERR_OK;
}

/* What RUNS runs show of one digest. */
static enum err_code add_digest(struct tx *tx, struct cell_row *row,
                                const struct run_digest *digest, int64_t runs,
                                int64_t first_runs, int64_t only_runs,
                                const struct run_record *sums, struct err *err)
{
    if (tx_run(tx, err,
               "INSERT INTO cell_digest (cell, digest, runs, iterations, first_runs,"
               " only_runs, run, weight_sum, loss) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
               " ON CONFLICT (cell, digest) DO UPDATE SET runs = runs + excluded.runs,"
               " iterations = iterations + excluded.iterations,"
               " first_runs = first_runs + excluded.first_runs,"
               " only_runs = only_runs + excluded.only_runs,"
               " weight_sum = iif(excluded.run < ifnull(run, '~'),"
               " excluded.weight_sum, weight_sum),"
               " loss = iif(excluded.run < ifnull(run, '~'), excluded.loss, loss),"
               " run = iif(excluded.run < ifnull(run, '~'), excluded.run, run)",
               row->cell.id, digest->digest, runs, digest->iterations, first_runs,
               only_runs, sums ? sums->id : NULL, or_null(sums ? sums->weight_sum : NULL),
               or_null(sums ? sums->loss : NULL)) != ERR_OK) {
        return err->code;
    }
    return look_at_digest(tx, row, digest->digest, runs, err);
}

static enum err_code fold_digest(struct tx *tx, struct cell_row *row,
                                 const struct run_record *run,
                                 const struct run_digest *digest, struct err *err)
{
    return add_digest(tx, row, digest, 1, strcmp(digest->digest, run->digest) == 0,
                      run->distinct_digests == 1, sums_belong(run, digest) ? run : NULL,
                      err);
}

static void add_extremes(struct cell *cell, int64_t min_ns, int64_t max_ns)
{
    if (min_ns && (!cell->min_ns || min_ns < cell->min_ns)) {
        cell->min_ns = min_ns;
    }
    if (max_ns > cell->max_ns) {
        cell->max_ns = max_ns;
    }
}

static enum err_code fold_times(struct tx *tx, struct cell *cell,
                                const struct run_record *run, struct err *err)
{
    add_extremes(cell, run->min_ns, run->max_ns);
    cell->median_ns_sum += run->median_ns;
    return cells_times_add(tx, cell->id, run->median_ns, err);
}

/* What a run's item requests in addition to the case, and the state of its device. */
struct conditions {
    char options[RUN_OPTIONS_SIZE], state[DEVICE_STATE_SIZE];
};

static enum err_code load_conditions(struct tx *tx, const struct run_record *run,
                                     struct conditions *ret, struct err *err)
{
    struct query q;

    ret->options[0] = '\0';
    query_begin(&q, tx,
                "SELECT i.options FROM job j JOIN job_item i ON i.job = j.number"
                " AND i.seq = ? WHERE j.id = ?",
                run->item, run->job);
    if (query_step(&q)) {
        query_take_text(&q, ret->options, RUN_OPTIONS_SIZE);
    }
    return query_end(&q, err) == ERR_OK
               ? device_state_load(tx, run->device, run->id, ret->state, err)
               : err->code;
}

/* Adds RUNS to what is known of their device and of their conditions. */
static enum err_code add_conditions(struct tx *tx, struct cell_row *row,
                                    const struct device_runs *runs, struct err *err)
{
    struct device_effect effect;

    if (cell_devices_fold(tx, row->cell.id, runs, &effect, err) != ERR_OK) {
        return err->code;
    }
    row->cell.evidence.devices += effect.is_first;
    row->cell.evidence.varied |= effect.varied_ms > 0;
    return tx_run(tx, err,
                  "INSERT INTO cell_alike (cell, options, runs, varied, varied_ms)"
                  " VALUES (?, ?, ?, ?, ?)"
                  " ON CONFLICT (cell, options) DO UPDATE SET"
                  " runs = runs + excluded.runs, varied = max(varied, excluded.varied),"
                  " varied_ms = max(varied_ms, excluded.varied_ms)",
                  row->cell.id, runs->options, runs->runs, effect.varied_ms > 0,
                  effect.varied_ms);
}

static enum err_code fold_conditions(struct tx *tx, struct cell_row *row,
                                     const struct run_record *run,
                                     const struct run_digest *digests, int digest_count,
                                     struct err *err)
{
    struct conditions conditions;
    const struct device_runs shown = {
        .options = conditions.options,
        .state = conditions.state,
        .device = run->device,
        .first_run = run->id,
        .last_run = run->id,
        .runs = 1,
        .iterations = run->iterations,
        .first_ms = run->started_ms ? run->started_ms : run->intent_ms,
        .last_ms = run->finished_ms,
        .digest = run->digest,
        .digests = digests,
        .digest_count = digest_count,
    };

    return load_conditions(tx, run, &conditions, err) == ERR_OK
               ? add_conditions(tx, row, &shown, err)
               : err->code;
}

enum err_code cells_count_varied(struct tx *tx, int64_t cell, int64_t *ret_count,
                                 struct err *err)
{
    return tx_fetch_int(tx, ret_count, err,
                        "SELECT ifnull(sum(1 + varied_ms / ?), 0) FROM cell_alike"
                        " WHERE cell = ? AND varied",
                        VERDICT_VOUCHED_STEP_MS, cell);
}

/* Equal bits that are out of bound once are so always; failed comes first by text, too.
 */
static enum err_code fold_checked_digest(struct tx *tx, struct cell_row *row,
                                         const struct run_check *check, struct err *err)
{
    int64_t passed_before = 0, passed = 0;

    if (tx_fetch_int(tx, &passed_before, err,
                     "SELECT checked IS 'passed' FROM cell_digest WHERE cell = ?"
                     " AND digest = ?",
                     row->cell.id, check->digest) != ERR_OK ||
        tx_fetch_int(tx, &passed, err,
                     "UPDATE cell_digest SET checked = min(?1, ifnull(checked, ?1))"
                     " WHERE cell = ?2 AND digest = ?3 RETURNING checked = 'passed'",
                     check_state_name(check->state), row->cell.id,
                     check->digest) != ERR_OK) {
        return err->code;
    }
    row->cell.evidence.checks.digests_passed += passed - passed_before;
    return ERR_OK;
}

static enum err_code fold_check(struct tx *tx, struct cell_row *row,
                                const struct run_record *run, struct err *err)
{
    struct checks *checks = &row->cell.evidence.checks;
    const struct run_check *check = &run->check;

    checks->passed += check->state == CHECK_PASSED;
    checks->failed += check->state == CHECK_FAILED;
    checks->given_up += check->state == CHECK_GIVEN_UP;
    checks->unanswered += check->state == CHECK_ASKED;
    if (check->state == CHECK_PASSED && check->share_ppm > checks->share_ppm) {
        checks->share_ppm = check->share_ppm;
    }
    if (check->state == CHECK_FAILED &&
        (!row->failed_check[0] || strcmp(run->id, row->failed_check) < 0)) {
        copy_text(row->failed_check, sizeof row->failed_check, run->id);
        copy_text(checks->failed_words, sizeof checks->failed_words, check->words);
    }
    return check->digest[0] ? fold_checked_digest(tx, row, check, err) : ERR_OK;
}

static enum err_code fold_completed(struct tx *tx, struct cell_row *row,
                                    const struct run_record *run,
                                    const struct run_digest *digests, int digest_count,
                                    struct err *err)
{
    struct cell *cell = &row->cell;
    struct evidence *e = &cell->evidence;

    e->iterations += run->iterations;
    e->completed_since_failure += strcmp(run->id, row->last_failed_run) > 0;
    if (run->finished_ms > e->last_completed_ms) {
        e->last_completed_ms = run->finished_ms;
    }
    e->disturbed += run->circumstances[0] != '\0';
    e->contended += run_is_contended(run);
    e->claimed += strcmp(run->claim, "deterministic") == 0;
    e->warned += strcmp(run->claim, "non-deterministic") == 0;
    if (cell_algorithms_add(tx, cell->id, run->algorithm, 1, err) != ERR_OK) {
        return err->code;
    }
    if (!run->circumstances[0] && fold_times(tx, cell, run, err) != ERR_OK) {
        return err->code;
    }
    for (int i = 0; i < digest_count; i++) {
        if (fold_digest(tx, row, run, &digests[i], err) != ERR_OK) {
            return err->code;
        }
    }
    return fold_check(tx, row, run, err) == ERR_OK
               ? fold_conditions(tx, row, run, digests, digest_count, err)
               : err->code;
}

enum err_code cells_count_since_failure(struct tx *tx, struct cell_row *row,
                                        struct err *err)
{
    int64_t *count = &row->cell.evidence.completed_since_failure;
    int64_t folded;

    if (tx_fetch_int(tx, count, err,
                     "SELECT count(*) FROM run WHERE cell = ? AND id > ?"
                     " AND outcome = 'completed'",
                     row->cell.id, row->last_failed_run) != ERR_OK ||
        summaries_count_since(tx, row->cell.id, row->last_failed_run, &folded, err) !=
            ERR_OK) {
        return err->code;
    }
    *count += folded;
    return ERR_OK;
}

/* A failure later than all before it restarts the count of completed runs. */
static enum err_code fold_failure(struct tx *tx, struct cell_row *row,
                                  const struct run_record *run, struct err *err)
{
    if (strcmp(run->id, row->last_failed_run) <= 0) {
        return ERR_OK;
    }
    memcpy(row->last_failed_run, run->id, sizeof row->last_failed_run);
    return cells_count_since_failure(tx, row, err);
}

static void add_span(struct cell *cell, int64_t first_ms, int64_t last_ms)
{
    if (!cell->first_ms || first_ms < cell->first_ms) {
        cell->first_ms = first_ms;
    }
    if (last_ms > cell->last_ms) {
        cell->last_ms = last_ms;
    }
}

enum err_code cells_fold_counts(struct tx *tx, struct cell_row *row,
                                const struct run_record *run,
                                const struct run_digest *digests, int digest_count,
                                struct err *err)
{
    struct cell *cell = &row->cell;

    cell->evidence.runs[run->outcome]++;
    cell->evidence.checks.cut_off += run->check.state == CHECK_CUT_OFF;
    add_span(cell, run->started_ms ? run->started_ms : run->intent_ms, run->finished_ms);
    if (run->outcome == OUTCOME_COMPLETED) {
        return fold_completed(tx, row, run, digests, digest_count, err);
    }
    return outcome_is_failure(run->outcome) ? fold_failure(tx, row, run, err) : ERR_OK;
}

static enum err_code fold_summary_times(struct tx *tx, struct cell *cell,
                                        const struct run_summary *s, struct err *err)
{
    add_extremes(cell, s->min_ns, s->max_ns);
    cell->median_ns_sum += s->median_ns_sum;
    for (int b = 0; b < TIMES_BUCKETS; b++) {
        if (s->times[b] &&
            cells_times_add_many(tx, cell->id, b, s->times[b], err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

enum err_code cells_fold_summary(struct tx *tx, struct cell_row *row,
                                 const struct run_summary *s, struct err *err)
{
    struct evidence *e = &row->cell.evidence;
    struct run_digest digest = { .iterations = s->iterations };
    char state[DEVICE_STATE_SIZE];
    const struct device_runs shown = {
        .options = s->options,
        .state = state,
        .device = s->device,
        .first_run = s->first_run,
        .last_run = s->last_run,
        .runs = s->runs,
        .iterations = s->iterations,
        .first_ms = s->first_ms,
        .last_ms = s->last_ms,
        .digest = s->digest,
        .digests = &digest,
        .digest_count = 1,
    };

    add_span(&row->cell, s->first_ms, s->last_ms);
    if (s->refused) {
        e->runs[OUTCOME_INVALID] += s->runs;
        if (strcmp(s->last_run, row->last_failed_run) > 0) {
            copy_text(row->last_failed_run, sizeof row->last_failed_run, s->last_run);
        }
        return ERR_OK;
    }
    e->runs[OUTCOME_COMPLETED] += s->runs;
    e->iterations += s->iterations;
    if (s->last_ms > e->last_completed_ms) {
        e->last_completed_ms = s->last_ms;
    }
    e->disturbed += s->circumstances[0] ? s->runs : 0;
    e->contended += s->contended ? s->runs : 0;
    e->claimed += strcmp(s->claim, "deterministic") == 0 ? s->runs : 0;
    e->warned += strcmp(s->claim, "non-deterministic") == 0 ? s->runs : 0;
    if (cell_algorithms_add(tx, s->cell, s->algorithm, s->runs, err) != ERR_OK) {
        return err->code;
    }
    if (!s->circumstances[0] && fold_summary_times(tx, &row->cell, s, err) != ERR_OK) {
        return err->code;
    }
    copy_text(digest.digest, sizeof digest.digest, s->digest);
    /* Its sums are those of the first run with its digest, which has its own row. */
    return device_state_load(tx, s->device, s->first_run, state, err) == ERR_OK &&
                   add_digest(tx, row, &digest, s->runs, s->runs, s->runs, NULL, err) ==
                       ERR_OK
               ? add_conditions(tx, row, &shown, err)
               : err->code;
}
