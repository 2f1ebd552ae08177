/* Judging the cell of a finished run, after it was counted (db/cells_judge.h). */
#include <string.h>

#include "daemon/base/mem.h"
#include "db/cases/challenge_counts.h"
#include "db/cells_judge.h"
#include "db/dissent/settle.h"
#include "db/dissent/unsettled.h"
#include "db/integrity/cell_repair.h"
#include "db/tx.h"

/* Whether a control is said to have computed the same, and for the same reason, with the
 * checks A and B. */
static bool are_alike(const struct checks *a, const struct checks *b)
{
    return a->failed == b->failed && a->digests_passed == b->digests_passed &&
           (a->given_up > 0) == (b->given_up > 0) &&
           (a->cut_off > 0) == (b->cut_off > 0) &&
           (a->unanswered > 0) == (b->unanswered > 0);
}

bool cells_answered_alike(const struct challenges *a, const struct challenges *b)
{
    return a->passed == b->passed && a->repeated == b->repeated &&
           a->unchanged == b->unchanged && a->failed == b->failed &&
           /* never false: another run is told of only with another count */
           strcmp(a->run, b->run) == 0;
}

/* If a control has differed before, what depends on it can only change because it varied
 * under further conditions, or lately, or because of what it was seen to compute. */
static enum err_code judge_dependants(struct tx *tx, const struct cell_row *row,
                                      const struct run_record *run,
                                      const struct evidence *before,
                                      int64_t varied_before, bool agreement_changed,
                                      struct err *err)
{
    const struct checks *checks = &row->cell.evidence.checks;
    int64_t varied = 0;

    if (cells_count_varied(tx, row->cell.id, &varied, err) != ERR_OK) {
        return err->code;
    }
    return before->distinct_digests < 2 || varied > varied_before || agreement_changed ||
                   !are_alike(checks, &before->checks) ||
                   !cells_answered_alike(&row->cell.evidence.challenges,
                                         &before->challenges)
               ? cells_judge_dependants(tx, row->cell.id, run->id, run->finished_ms, err)
               : ERR_OK;
}

/* Nothing is added to what is not what was stored: it is built anew from the runs, of
 * which RUN is one. */
static enum err_code fold_damaged(struct tx *tx, const struct run_record *run,
                                  struct cell_row *row, struct cell_effect *ret_effect,
                                  struct err *err)
{
    enum verdict before = row->cell.verdict;
    enum cell_repair ignored;

    if (cell_repair(tx, run->cell, run->finished_ms, &ignored, err) != ERR_OK ||
        cell_rows_load(tx, run->cell, row, err) != ERR_OK) {
        return err->code;
    }
    *ret_effect = (struct cell_effect){ .agreement = row->cell.agreement };
    cell_rows_distrust(row);
    ret_effect->verdict = row->cell.verdict;
    ret_effect->changed = row->cell.verdict != before;
    return ERR_OK;
}

/* Whether a challenge gave a digest of its cell depends on which these are. */
static enum err_code count_challenges(struct tx *tx, struct cell_row *row,
                                      int64_t digests_before, struct err *err)
{
    struct evidence *e = &row->cell.evidence;

    return e->checks.has_reference || e->distinct_digests == digests_before
               ? ERR_OK
               : challenges_count(tx, row->cell.id, NULL, &e->challenges, err);
}

/* Stores the counts of ROW with the judgement that it has: it is judged before the
 * commit. */
static enum err_code keep_judgement(struct tx *tx, const struct cell_row *row,
                                    const struct run_record *run,
                                    const struct evidence *before, struct err *err)
{
    struct unsettled unsettled = { .cell = row->cell.id,
                                   .now_ms = run->finished_ms,
                                   .distinct = before->distinct_digests };
    struct judgement judgement = { .verdict = row->cell.verdict,
                                   .agreement = row->cell.agreement,
                                   .agreeing = row->cell.agreeing,
                                   .vouched_ms = row->cell.vouched_ms };

    copy_text(judgement.reason, sizeof judgement.reason, row->cell.reason);
    copy_text(unsettled.run, sizeof unsettled.run, run->id);
    unsettled_add(tx, &unsettled);
    return cell_rows_store(tx, row, &judgement, row->cell.changed_ms, err);
}

enum err_code cells_challenged(struct tx *tx, int64_t cell, const struct run_record *run,
                               enum verdict *ret_verdict, bool *ret_changed,
                               struct err *err)
{
    struct cell_row row;
    struct judgement judgement;
    struct challenges before;

    if (cell_rows_load(tx, cell, &row, err) != ERR_OK) {
        return err->code;
    }
    if (cells_settle_defers(tx, &row.cell, false)) {
        *ret_verdict = row.cell.verdict;
        *ret_changed = false;
        return keep_judgement(tx, &row, run, &row.cell.evidence, err);
    }
    before = row.cell.evidence.challenges;
    if (challenges_count(tx, cell, NULL, &row.cell.evidence.challenges, err) != ERR_OK ||
        cell_rows_judge(tx, &row, &judgement, err) != ERR_OK) {
        return err->code;
    }
    *ret_verdict = judgement.verdict;
    *ret_changed = judgement.verdict != row.cell.verdict;
    if (cell_rows_store(tx, &row, &judgement,
                        *ret_changed ? run->finished_ms : row.cell.changed_ms,
                        err) != ERR_OK ||
        (cells_is_change(&row.cell, &judgement) &&
         cells_add_change(tx, &row, &judgement, run->id, run->finished_ms, err) !=
             ERR_OK)) {
        return err->code;
    }
    return row.cell.is_control &&
                   !cells_answered_alike(&row.cell.evidence.challenges, &before)
               ? cells_judge_dependants(tx, cell, run->id, run->finished_ms, err)
               : ERR_OK;
}

static enum err_code judge(struct tx *tx, struct cell_row *row,
                           const struct run_record *run, const struct evidence *before,
                           struct judgement *ret_judgement, struct err *err)
{
    int64_t now_ms = run->finished_ms;
    bool changed;

    if (count_challenges(tx, row, before->distinct_digests, err) != ERR_OK ||
        cell_rows_judge(tx, row, ret_judgement, err) != ERR_OK) {
        return err->code;
    }
    unsettled_remove(tx, row->cell.id, NULL);
    changed = ret_judgement->verdict != row->cell.verdict;
    if (cell_rows_store(tx, row, ret_judgement, changed ? now_ms : row->cell.changed_ms,
                        err) != ERR_OK ||
        cells_store_dissenters(tx, row, ret_judgement, run->id, now_ms, err) != ERR_OK) {
        return err->code;
    }
    return cells_is_change(&row->cell, ret_judgement) ||
                   row->cell.evidence.distinct_digests != before->distinct_digests
               ? cells_add_change(tx, row, ret_judgement, run->id, now_ms, err)
               : ERR_OK;
}

/* Whether RUN showed of a reproducible cell what all runs before it did. */
static bool is_confirmed(const struct cell *cell, const struct run_record *run,
                         const struct evidence *before)
{
    return cell->verdict == VERDICT_REPRODUCIBLE && run->outcome == OUTCOME_COMPLETED &&
           cell->evidence.distinct_digests == before->distinct_digests &&
           cell->evidence.warned == before->warned &&
           are_alike(&cell->evidence.checks, &before->checks);
}

enum err_code cells_fold(struct tx *tx, const struct run_record *run,
                         const struct run_digest *digests, int digest_count,
                         struct cell_effect *ret_effect, struct err *err)
{
    struct cell_row row;
    struct judgement judgement;
    struct evidence before;
    int64_t varied_before = 0;
    bool later;

    if (cell_rows_load(tx, run->cell, &row, err) != ERR_OK) {
        return err->code;
    }
    if (row.damaged) {
        return fold_damaged(tx, run, &row, ret_effect, err);
    }
    if ((row.cell.is_control &&
         cells_count_varied(tx, row.cell.id, &varied_before, err) != ERR_OK)) {
        return err->code;
    }
    before = row.cell.evidence;
    if (cells_fold_counts(tx, &row, run, digests, digest_count, err) != ERR_OK) {
        return err->code;
    }
    later = cells_settle_defers(tx, &row.cell, is_confirmed(&row.cell, run, &before));
    judgement.verdict = row.cell.verdict;
    judgement.agreement = row.cell.agreement;
    if ((later ? keep_judgement(tx, &row, run, &before, err)
               : judge(tx, &row, run, &before, &judgement, err)) != ERR_OK) {
        return err->code;
    }
    *ret_effect = (struct cell_effect){
        .verdict = judgement.verdict,
        .changed = judgement.verdict != row.cell.verdict,
        .agreement = judgement.agreement,
    };
    return row.cell.is_control && (run->outcome == OUTCOME_COMPLETED ||
                                   run->check.state == CHECK_CUT_OFF)
               ? judge_dependants(tx, &row, run, &before, varied_before,
                                  judgement.agreement != row.cell.agreement, err)
               : ERR_OK;
}
