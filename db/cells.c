#include "db/cells.h"

#include "daemon/base/mem.h"
#include "db/cells_rows.h"
#include "db/tx.h"

static enum err_code each_now(struct tx *tx, const char *environment,
                              void (*visit)(void *arg, const struct cell *cell),
                              void *arg, struct err *err)
{
    enum err_code code = ERR_OK;
    struct query q;

    /* CROSS JOIN keeps the cases outermost, in the order of their index: no sorting. */
    query_begin(&q, tx,
                "SELECT " CELL_ROW_COLUMNS
                " FROM environment e CROSS JOIN case_key k"
                " CROSS JOIN cell c ON c.environment = e.number AND c.case_key = k.number"
                " WHERE e.id = ? AND NOT k.challenge"
                " ORDER BY k.workload, k.variant, k.size, k.dtype, k.seed, k.version",
                environment);
    while (code == ERR_OK && query_step(&q)) {
        struct cell_row row;

        cell_rows_take(&q, &row);
        cell_rows_distrust(&row);
        code = cells_times_load(tx, &row.cell, err);
        if (code == ERR_OK) {
            visit(arg, &row.cell);
        }
    }
    return query_close(&q, code, err);
}

static void take_past(struct query *q, struct cell *ret_cell)
{
    bool damaged;

    *ret_cell = (struct cell){ .id = query_take_int(q) };
    case_keys_take(q, &ret_cell->key);
    query_take(q, &ret_cell->is_control);
    ret_cell->subject = cell_rows_take_subject(q);
    query_take(q, ret_cell->subject_name, ret_cell->environment, &ret_cell->changed_ms);
    ret_cell->verdict = cell_rows_take_verdict(q);
    query_take(
        q, ret_cell->reason, &ret_cell->evidence.runs[OUTCOME_COMPLETED],
        &ret_cell->evidence.iterations, &ret_cell->evidence.distinct_digests,
        &ret_cell->vouched_ms, &ret_cell->evidence.varied,
        &ret_cell->evidence.checks.has_reference, &ret_cell->evidence.checks.passed,
        &ret_cell->evidence.checks.failed, &ret_cell->evidence.checks.digests_passed,
        &ret_cell->evidence.challenges.passed, &ret_cell->evidence.challenges.repeated,
        &ret_cell->evidence.challenges.unchanged, &ret_cell->evidence.challenges.failed,
        &damaged);
    if (damaged) {
        ret_cell->verdict = VERDICT_INCONCLUSIVE;
        copy_text(ret_cell->reason, sizeof ret_cell->reason,
                  "its row in the database is not what was stored");
    }
}

static enum err_code each_as_of(struct tx *tx, const char *environment, int64_t as_of_ms,
                                void (*visit)(void *arg, const struct cell *cell),
                                void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT c.id, " CASE_KEY_COLUMNS
                ", k.is_control, c.subject, c.subject_name, e.id, h.at_ms,"
                " h.verdict, h.reason, h.runs, h.iterations, h.distinct_digests,"
                " h.vouched_ms,"
                " EXISTS (SELECT 1 FROM cell_alike a WHERE a.cell = c.id AND a.varied),"
                " c.has_reference, c.checks_passed, c.checks_failed, c.digests_passed,"
                " c.challenges_passed, c.challenges_repeated, c.challenges_unchanged,"
                " c.challenges_failed,"
                " h.sum IS NOT " CELL_HISTORY_SUM
                " FROM environment e CROSS JOIN case_key k"
                " CROSS JOIN cell c ON c.environment = e.number AND c.case_key = k.number"
                " CROSS JOIN cell_history h ON h.cell = c.id AND h.at_ms ="
                " (SELECT max(at_ms) FROM cell_history WHERE cell = c.id AND at_ms <= ?)"
                " WHERE e.id = ? AND NOT k.challenge"
                " ORDER BY k.workload, k.variant, k.size, k.dtype, k.seed, k.version",
                as_of_ms, environment);
    while (query_step(&q)) {
        struct cell cell;

        take_past(&q, &cell);
        visit(arg, &cell);
    }
    return query_end(&q, err);
}

enum err_code cells_each(struct tx *tx, const char *environment, int64_t as_of_ms,
                         void (*visit)(void *arg, const struct cell *cell), void *arg,
                         struct err *err)
{
    return as_of_ms ? each_as_of(tx, environment, as_of_ms, visit, arg, err)
                    : each_now(tx, environment, visit, arg, err);
}

enum err_code cells_get(struct tx *tx, int64_t id, struct cell *ret_cell, struct err *err)
{
    struct cell_row row;

    if (cell_rows_load(tx, id, &row, err) != ERR_OK) {
        return err->code;
    }
    cell_rows_distrust(&row);
    *ret_cell = row.cell;
    return cells_times_load(tx, ret_cell, err);
}

enum err_code cells_get_control(struct tx *tx, int64_t id, struct cell *ret_control,
                                struct err *err)
{
    int64_t control = 0;

    if (tx_fetch_int(tx, &control, err,
                     "SELECT c.id FROM cell_control x JOIN cell c ON c.id = x.control"
                     " JOIN cell o ON o.id = x.cell AND o.subject = c.subject"
                     " JOIN case_key k ON k.number = c.case_key"
                     " WHERE x.cell = ? AND c.checks_failed = 0"
                     " AND c.completed - c.disturbed >= ?"
                     " ORDER BY k.variant LIMIT 1",
                     id, TIMES_COST_RUNS) != ERR_OK) {
        return err->code;
    }
    return control ? cells_get(tx, control, ret_control, err)
                   : err_set(err, ERR_NOT_FOUND, "nothing to compare with");
}

enum err_code cells_each_broken_claim(struct tx *tx, int64_t before, int limit,
                                      void (*visit)(void *arg, const struct cell *cell),
                                      void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT " CELL_ROW_COLUMNS
                " FROM cell c INDEXED BY cell_broken_claim CROSS JOIN case_key k"
                " ON k.number = c.case_key CROSS JOIN environment e"
                " ON e.number = c.environment"
                " WHERE NOT k.challenge AND c.claimed > 0 AND c.claimed = c.completed"
                " AND c.distinct_digests > 1 AND c.checks_failed = 0 AND c.id < ? ORDER "
                "BY c.id DESC LIMIT ?",
                before ? before : INT64_MAX, limit);
    while (query_step(&q)) {
        struct cell_row row;

        cell_rows_take(&q, &row);
        cell_rows_distrust(&row);
        visit(arg, &row.cell);
    }
    return query_end(&q, err);
}

enum err_code cells_each_digest(struct tx *tx, int64_t id, int limit,
                                void (*visit)(void *arg,
                                              const struct cell_digest *digest),
                                void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT digest, runs, iterations, weight_sum, loss, checked"
                " FROM cell_digest"
                " WHERE cell = ? ORDER BY runs DESC, iterations DESC, digest LIMIT ?",
                id, limit);
    while (query_step(&q)) {
        struct cell_digest digest;

        query_take(&q, digest.digest, &digest.runs, &digest.iterations, digest.weight_sum,
                   digest.loss);
        digest.checked = check_state_parse(query_borrow_text(&q));
        visit(arg, &digest);
    }
    return query_end(&q, err);
}

enum err_code
cells_each_conditions(struct tx *tx, int64_t id, int limit,
                      void (*visit)(void *arg, const struct cell_conditions *conditions),
                      void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT options, runs, varied FROM cell_alike WHERE cell = ?"
                " ORDER BY options LIMIT ?",
                id, limit);
    while (query_step(&q)) {
        struct cell_conditions conditions;

        query_take(&q, conditions.options, &conditions.runs, &conditions.varied);
        visit(arg, &conditions);
    }
    return query_end(&q, err);
}

enum err_code cells_each_algorithm(struct tx *tx, int64_t id, int limit,
                                   void (*visit)(void *arg,
                                                 const struct cell_algorithm *algorithm),
                                   void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT algorithm, runs FROM cell_algorithm WHERE cell = ?"
                " ORDER BY runs DESC, algorithm LIMIT ?",
                id, limit);
    while (query_step(&q)) {
        struct cell_algorithm algorithm;

        query_take(&q, algorithm.algorithm, &algorithm.runs);
        visit(arg, &algorithm);
    }
    return query_end(&q, err);
}

enum err_code cells_each_change(struct tx *tx, int64_t id, int64_t before_ms, int limit,
                                void (*visit)(void *arg,
                                              const struct cell_change *change),
                                void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT at_ms, run, verdict, reason, runs, iterations, distinct_digests"
                " FROM cell_history WHERE cell = ? AND at_ms < ?"
                " ORDER BY at_ms DESC LIMIT ?",
                id, before_ms ? before_ms : INT64_MAX, limit);
    while (query_step(&q)) {
        struct cell_change change;

        query_take(&q, &change.at_ms, change.run);
        change.verdict = cell_rows_take_verdict(&q);
        query_take(&q, change.reason, &change.runs, &change.iterations,
                   &change.distinct_digests);
        visit(arg, &change);
    }
    return query_end(&q, err);
}

enum err_code cells_latest(struct tx *tx, int64_t *ret_ms, struct err *err)
{
    struct query q;

    *ret_ms = 0;
    query_begin(&q, tx, "SELECT ifnull(max(last_ms), 0) FROM cell");
    if (query_step(&q)) {
        *ret_ms = query_take_int(&q);
    }
    return query_end(&q, err);
}
