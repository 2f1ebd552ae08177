#include "db/cells_judge.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "db/cases/algorithms.h"
#include "db/dissent/cell_devices.h"
#include "db/dissent/unsettled.h"
#include "db/integrity/quarantine.h"
#include "db/tx.h"

/* Of cell c, a control: it was seen to compute what it should, within bound of its
 * reference; or, of a command, from its inputs (challenges_passed of
 * daemon/jobs/challenge.h).  Its parameters are CHECKS_DIGESTS and CHALLENGES_REPEATED.
 */
#define IS_RIGHT                                                                         \
    "(" CELL_INTACT                                                                      \
    " AND iif(c.has_reference, c.digests_passed >= ?2 AND c.checks_failed = 0,"          \
    " c.challenges_passed > 0 AND c.challenges_unchanged = 0"                            \
    " AND NOT (c.challenges_repeated >= ?3"                                              \
    " AND c.challenges_repeated > 3 * c.challenges_passed)))"

/* Of cell c, a control: what varied there may be devices that are wrong. */
#define MAY_BE_DEVICES "(c.agreement IN ('disagree', 'undecided'))"

#define OF_THOSE_THAT_DIFFERED " FILTER (WHERE c.distinct_digests > 1)"

static enum err_code load_control(struct tx *tx, int64_t cell,
                                  struct control *ret_control, struct err *err)
{
    struct checks *checks = &ret_control->checks;
    struct challenges *challenges = &ret_control->challenges;

    return tx_fetch(
        tx,
        TX_TARGETS(&ret_control->runs, &ret_control->differed, &ret_control->right,
                   &ret_control->undecided, &checks->failed, &checks->given_up,
                   &checks->cut_off, &checks->unanswered, &checks->digests_passed,
                   &ret_control->is_command, &challenges->passed, &challenges->repeated,
                   &challenges->unchanged, &challenges->failed),
        err,
        "SELECT sum(c.completed), max(c.distinct_digests > 1),"
        " max(c.distinct_digests > 1 AND " IS_RIGHT
        "), max(c.agreement = 'undecided' AND EXISTS (SELECT 1"
        " FROM cell_alike a WHERE a.cell = c.id AND a.varied)"
        " AND " IS_RIGHT
        "),"
        " sum(c.checks_failed)" OF_THOSE_THAT_DIFFERED
        ", sum(c.checks_given_up)" OF_THOSE_THAT_DIFFERED
        ", sum(c.checks_cut_off)" OF_THOSE_THAT_DIFFERED
        ", sum(c.checks_unanswered)" OF_THOSE_THAT_DIFFERED
        ", max(c.digests_passed)" OF_THOSE_THAT_DIFFERED
        ", max(NOT c.has_reference)" OF_THOSE_THAT_DIFFERED
        ", sum(c.challenges_passed)" OF_THOSE_THAT_DIFFERED
        ", sum(c.challenges_repeated)" OF_THOSE_THAT_DIFFERED
        ", sum(c.challenges_unchanged)" OF_THOSE_THAT_DIFFERED
        ", sum(c.challenges_failed)" OF_THOSE_THAT_DIFFERED
        " FROM cell_control x JOIN cell c ON c.id = x.control"
        " WHERE x.cell = ?1 AND x.vouches",
        cell, CHECKS_DIGESTS, CHALLENGES_REPEATED);
}

enum err_code cells_right_control(struct tx *tx, int64_t cell, bool *ret_right,
                                  struct err *err)
{
    return tx_fetch(tx, TX_TARGETS(ret_right), err,
                    "SELECT count(*) FROM cell c WHERE c.id = ?1 AND " IS_RIGHT
                    " AND NOT " MAY_BE_DEVICES,
                    cell, CHECKS_DIGESTS, CHALLENGES_REPEATED);
}

/* What is wrong with the first, by variant, of the controls that differed and are. */
static enum err_code load_wrong(struct tx *tx, int64_t cell, struct control *ret_control,
                                struct err *err)
{
    char *words = ret_control->checks.failed_words;
    struct query q;

    query_begin(&q, tx,
                "SELECT c.failed_check_words, c.challenge_run FROM cell_control x"
                " JOIN cell c ON c.id = x.control"
                " AND (c.checks_failed > 0 OR c.challenge_run IS NOT NULL)"
                " AND c.distinct_digests > 1"
                " JOIN case_key k ON k.number = c.case_key"
                " WHERE x.cell = ? AND x.vouches ORDER BY k.variant LIMIT 1",
                cell);
    if (query_step(&q)) {
        query_take_text(&q, words, CASE_TITLE_SIZE);
        query_take(&q, ret_control->challenges.run);
    }
    return query_end(&q, err);
}

/* The conditions under which a control varied: those under which CELL has enough runs, if
 * there are such. */
static enum err_code load_conditions(struct tx *tx, int64_t cell,
                                     struct control *ret_control,
                                     char ret_conditions[RUN_OPTIONS_SIZE],
                                     struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT a.options, ifnull(own.runs, 0) FROM cell_control x"
                " JOIN cell c ON c.id = x.control AND " IS_RIGHT
                " AND NOT " MAY_BE_DEVICES
                " JOIN cell_alike a ON a.cell = x.control AND a.varied"
                " LEFT JOIN cell_alike own ON own.cell = x.cell"
                " AND own.options = a.options WHERE x.cell = ?1 AND x.vouches"
                " ORDER BY min(ifnull(own.runs, 0), ?4) DESC, a.options LIMIT 1",
                cell, CHECKS_DIGESTS, CHALLENGES_REPEATED, VERDICT_MIN_RUNS);
    if (query_step(&q)) {
        ret_control->varied = true;
        query_take_text(&q, ret_conditions, RUN_OPTIONS_SIZE);
        ret_control->conditions = ret_conditions;
        ret_control->own_runs = query_take_int(&q);
    }
    return query_end(&q, err);
}

/* When a control last varied under conditions under which CELL has enough runs. */
static enum err_code load_varied(struct tx *tx, int64_t cell, struct control *ret_control,
                                 struct err *err)
{
    return tx_fetch_int(tx, &ret_control->varied_ms, err,
                        "SELECT ifnull(max(a.varied_ms), 0) FROM cell_control x"
                        " JOIN cell c ON c.id = x.control AND " IS_RIGHT
                        " AND NOT " MAY_BE_DEVICES
                        " JOIN cell_alike a ON a.cell = x.control AND a.varied"
                        " JOIN cell_alike own ON own.cell = x.cell"
                        " AND own.options = a.options AND own.runs >= ?4"
                        " WHERE x.cell = ?1 AND x.vouches",
                        cell, CHECKS_DIGESTS, CHALLENGES_REPEATED, VERDICT_MIN_RUNS);
}

/* Whether the runs of the case CASE_KEY and its siblings computed from the same. */
static enum err_code load_contested(struct tx *tx, int64_t case_key,
                                    struct evidence *evidence, struct err *err)
{
    struct inputs inputs;
    int64_t siblings = 0;
    enum err_code code = tx_fetch_int(
        tx, &siblings, err, "SELECT siblings FROM case_key WHERE number = ?", case_key);

    if (code == ERR_OK) {
        code = case_inputs_load(tx, siblings, &inputs, err);
    }
    if (code == ERR_OK) {
        copy_text(evidence->contested, sizeof evidence->contested, inputs.words);
    }
    return code;
}

enum err_code cell_rows_judge(struct tx *tx, const struct cell_row *row,
                              struct judgement *ret_judgement, struct err *err)
{
    struct evidence evidence = row->cell.evidence;
    char conditions[RUN_OPTIONS_SIZE];
    enum err_code code = ERR_OK;
    struct control control = {
        .is_control = row->cell.is_control,
        .no_control = row->no_control[0] ? row->no_control : NULL,
    };

    if (load_contested(tx, row->case_key, &evidence, err) != ERR_OK ||
        quarantine_words(tx, row->cell.id, evidence.damaged, err) != ERR_OK ||
        cell_algorithms_count(tx, row->cell.id, &evidence.algorithms, err) != ERR_OK) {
        return err->code;
    }
    if (!control.is_control && !control.no_control &&
        (load_control(tx, row->cell.id, &control, err) != ERR_OK ||
         (control.differed &&
          (load_wrong(tx, row->cell.id, &control, err) != ERR_OK ||
           load_conditions(tx, row->cell.id, &control, conditions, err) != ERR_OK ||
           load_varied(tx, row->cell.id, &control, err) != ERR_OK)))) {
        return err->code;
    }
    if (evidence.distinct_digests > 1) {
        code = cell_devices_agreement(tx, row->cell.id, control.conditions,
                                      &evidence.agreement, err);
    }
    *ret_judgement = verdict_judge(&evidence, &control);
    return code;
}

static bool names_somebody(enum dissent_state agreement)
{
    return agreement == DISSENT_DISAGREE || agreement == DISSENT_BOTH;
}

/* Devices are looked at one by one only where somebody is named, or was. */
enum err_code cells_store_dissenters(struct tx *tx, const struct cell_row *row,
                                     const struct judgement *judgement, const char *run,
                                     int64_t now_ms, struct err *err)
{
    return names_somebody(judgement->agreement) || names_somebody(row->cell.agreement)
               ? cell_dissenters_store(tx, row->cell.id, run, now_ms, err)
               : ERR_OK;
}

#define SUM_COLUMN(column, member, what) ", " #column

static enum err_code store_verdict(struct tx *tx, int64_t cell, int64_t changed_ms,
                                   const struct judgement *judgement, struct err *err)
{
    return tx_run(
        tx, err,
        "UPDATE cell SET verdict = ?1, reason = ?2, vouched_ms = ?3, changed_ms = ?4,"
        " agreement = ?5, agreeing = ?6, agreeing_devices = ?7, agreeing_runs = ?8,"
        " agreeing_iterations = ?9,"
        " sum = reprod_sum(id, case_key, environment, subject, subject_name,"
        " has_reference" CELL_INTEGERS(SUM_COLUMN)
            CELL_TEXTS(SUM_COLUMN) ", ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) WHERE id = ?10",
        verdict_name(judgement->verdict), judgement->reason, judgement->vouched_ms,
        changed_ms, dissent_state_name(judgement->agreement),
        verdict_name(judgement->agreeing.verdict), judgement->agreeing.devices,
        judgement->agreeing.runs, judgement->agreeing.iterations, cell);
}

/* The time is moved on where two changes fall into one millisecond, so that the history
 * has an order and can be read in pages by time. */
static enum err_code add_history(struct tx *tx, const struct cell *cell,
                                 const struct judgement *judgement, const char *run,
                                 int64_t now_ms, int64_t *ret_at_ms, struct err *err)
{
    if (tx_fetch_int(tx, ret_at_ms, err,
                     "SELECT max(?2, ifnull(max(at_ms) + 1, 0)) FROM cell_history"
                     " WHERE cell = ?1",
                     cell->id, now_ms) != ERR_OK) {
        return err->code;
    }
    return tx_run(
        tx, err,
        "INSERT INTO cell_history (cell, at_ms, run, verdict, reason, runs,"
        " iterations, distinct_digests, vouched_ms, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6,"
        " ?7, ?8, ?9, reprod_sum(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9))",
        cell->id, *ret_at_ms, or_null(run), verdict_name(judgement->verdict),
        judgement->reason, cell->evidence.runs[OUTCOME_COMPLETED],
        cell->evidence.iterations, cell->evidence.distinct_digests,
        judgement->vouched_ms);
}

static enum err_code add_event(struct tx *tx, const struct cell *cell,
                               const struct judgement *judgement, int64_t now_ms,
                               int64_t history_ms, struct err *err)
{
    return tx_run(tx, err,
                  "INSERT INTO event (at_ms, kind, data) VALUES (?, 'cell', json_object("
                  "'id', ?, 'workload', ?, 'variant', ?, 'size', ?, 'environment', ?,"
                  " 'verdict', ?, 'reason', ?, 'history_ms', ?))",
                  now_ms, cell->id, cell->key.workload, cell->key.variant, cell->key.size,
                  cell->environment, verdict_name(judgement->verdict), judgement->reason,
                  history_ms);
}

bool cells_is_change(const struct cell *cell, const struct judgement *judgement)
{
    return judgement->verdict != cell->verdict ||
           verdict_waits(judgement->verdict, judgement->reason) !=
               verdict_waits(cell->verdict, cell->reason);
}

enum err_code cells_add_change(struct tx *tx, const struct cell_row *row,
                               const struct judgement *judgement, const char *run,
                               int64_t now_ms, struct err *err)
{
    int64_t history_ms = now_ms;

    if (add_history(tx, &row->cell, judgement, run, now_ms, &history_ms, err) != ERR_OK) {
        return err->code;
    }
    return add_event(tx, &row->cell, judgement, now_ms, history_ms, err);
}

static bool is_same(const struct cell *cell, const struct judgement *j)
{
    return j->verdict == cell->verdict && strcmp(j->reason, cell->reason) == 0 &&
           j->vouched_ms == cell->vouched_ms && j->agreement == cell->agreement &&
           j->agreeing.verdict == cell->agreeing.verdict &&
           j->agreeing.devices == cell->agreeing.devices &&
           j->agreeing.runs == cell->agreeing.runs &&
           j->agreeing.iterations == cell->agreeing.iterations;
}

static enum err_code judge_one(struct tx *tx, int64_t id, const char *run, int64_t now_ms,
                               struct err *err)
{
    struct cell_row row;
    struct judgement judgement;
    bool changed;

    if (unsettled_has(tx, id)) {
        return ERR_OK; /* it will be judged with all its runs */
    }
    if (cell_rows_load(tx, id, &row, err) != ERR_OK) {
        /* Nobody reads a verdict of a cell whose case is gone. */
        return err->code == ERR_NOT_FOUND ? ERR_OK : err->code;
    }
    if (cell_rows_judge(tx, &row, &judgement, err) != ERR_OK) {
        return err->code;
    }
    if (row.damaged) {
        return ERR_OK; /* nothing follows from it, until it is built anew */
    }
    changed = judgement.verdict != row.cell.verdict;
    if (is_same(&row.cell, &judgement)) {
        return ERR_OK;
    }
    if (store_verdict(tx, id, changed ? now_ms : row.cell.changed_ms, &judgement, err) !=
            ERR_OK ||
        cells_store_dissenters(tx, &row, &judgement, run, now_ms, err) != ERR_OK) {
        return err->code;
    }
    return cells_is_change(&row.cell, &judgement)
               ? cells_add_change(tx, &row, &judgement, run, now_ms, err)
               : ERR_OK;
}

/* Judging writes to the table that Q reads, so the ids come first. */
static enum err_code judge_each(struct query *q, const char *run, int64_t now_ms,
                                struct err *err)
{
    struct tx *tx = q->tx;
    int64_t *ids = NULL;
    size_t count = 0;
    enum err_code code;

    while (query_step(q)) {
        ids = xrealloc(ids, (count + 1) * sizeof *ids);
        ids[count++] = query_take_int(q);
    }
    code = query_end(q, err);
    for (size_t i = 0; i < count && code == ERR_OK; i++) {
        code = judge_one(tx, ids[i], run, now_ms, err);
    }
    free(ids);
    return code;
}

enum err_code cells_judge_again(struct tx *tx, int64_t id, int64_t now_ms,
                                struct err *err)
{
    int64_t is_control = 0;

    if (judge_one(tx, id, "", now_ms, err) != ERR_OK ||
        tx_fetch_int(tx, &is_control, err,
                     "SELECT k.is_control FROM cell c JOIN case_key k"
                     " ON k.number = c.case_key WHERE c.id = ?",
                     id) != ERR_OK) {
        return err->code;
    }
    return is_control ? cells_judge_dependants(tx, id, "", now_ms, err) : ERR_OK;
}

enum err_code cells_judge_dependants(struct tx *tx, int64_t control, const char *run,
                                     int64_t now_ms, struct err *err)
{
    struct query q;

    query_begin(&q, tx, "SELECT cell FROM cell_control WHERE control = ?", control);
    return judge_each(&q, run, now_ms, err);
}

enum err_code cells_judge_siblings(struct tx *tx, int64_t case_key, int64_t now_ms,
                                   struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT c.id FROM case_key a JOIN case_key k ON k.siblings = a.siblings"
                " JOIN cell c ON c.case_key = k.number WHERE a.number = ?",
                case_key);
    return judge_each(&q, "", now_ms, err);
}

static enum err_code judge_all(struct tx *tx, int64_t now_ms, struct err *err)
{
    struct query q;

    query_begin(&q, tx, "SELECT id FROM cell ORDER BY id");
    if (judge_each(&q, "", now_ms, err) != ERR_OK) {
        return err->code;
    }
    return tx_run(tx, err, "DELETE FROM judged") == ERR_OK
               ? tx_run(tx, err, "INSERT INTO judged (rules) VALUES (?)", VERDICT_RULES)
               : err->code;
}

enum err_code cells_judged_by(struct tx *tx, int64_t *ret_rules, struct err *err)
{
    *ret_rules = 0;
    return tx_fetch_int(tx, ret_rules, err, "SELECT rules FROM judged");
}

enum err_code cells_under_new_rules(struct tx *tx,
                                    enum err_code (*follow)(struct tx *tx, int64_t now_ms,
                                                            struct err *err),
                                    int64_t now_ms, struct err *err)
{
    int64_t rules;
    enum err_code code = cells_judged_by(tx, &rules, err);

    if (code != ERR_OK || rules == VERDICT_RULES) {
        return code;
    }
    code = tx_run(tx, err, "BEGIN IMMEDIATE");
    if (code == ERR_OK) {
        code = follow(tx, now_ms, err);
    }
    if (code == ERR_OK) {
        code = tx_run(tx, err, "COMMIT");
    }
    if (code != ERR_OK && !sqlite3_get_autocommit(tx->db)) {
        struct err ignored;

        tx_run(tx, &ignored, "ROLLBACK");
    }
    return code;
}

enum err_code cells_judge_outdated(struct tx *tx, int64_t now_ms, struct err *err)
{
    return cells_under_new_rules(tx, judge_all, now_ms, err);
}
