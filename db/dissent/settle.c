#include "db/dissent/settle.h"

#include "daemon/base/mem.h"
#include "db/cases/challenge_counts.h"
#include "db/cells_judge.h"
#include "db/dissent/unsettled.h"
#include "db/tx.h"

bool cells_settle_defers(const struct tx *tx, const struct cell *cell, bool confirmed)
{
    return tx->settles && (cell->agreement != DISSENT_NONE || confirmed) &&
           cell->evidence.devices > CELLS_SETTLE_DEVICES;
}

static enum err_code judge(struct tx *tx, const struct unsettled *u, struct err *err)
{
    struct cell_row row;
    struct judgement judgement;
    struct challenges before;
    struct challenges *challenges = &row.cell.evidence.challenges;
    bool changed;

    if (cell_rows_load(tx, u->cell, &row, err) != ERR_OK) {
        return err->code;
    }
    before = *challenges;
    if ((!row.cell.evidence.checks.has_reference &&
         challenges_count(tx, u->cell, NULL, challenges, err) != ERR_OK) ||
        cell_rows_judge(tx, &row, &judgement, err) != ERR_OK) {
        return err->code;
    }
    changed = judgement.verdict != row.cell.verdict;
    if (cell_rows_store(tx, &row, &judgement, changed ? u->now_ms : row.cell.changed_ms,
                        err) != ERR_OK ||
        cells_store_dissenters(tx, &row, &judgement, u->run, u->now_ms, err) != ERR_OK) {
        return err->code;
    }
    if ((cells_is_change(&row.cell, &judgement) ||
         row.cell.evidence.distinct_digests != u->distinct) &&
        cells_add_change(tx, &row, &judgement, u->run, u->now_ms, err) != ERR_OK) {
        return err->code;
    }
    return row.cell.is_control && (judgement.agreement != row.cell.agreement ||
                                   !cells_answered_alike(challenges, &before))
               ? cells_judge_dependants(tx, u->cell, u->run, u->now_ms, err)
               : ERR_OK;
}

enum err_code cells_settle_one(struct tx *tx, int64_t cell, struct err *err)
{
    struct unsettled unsettled;

    return unsettled_remove(tx, cell, &unsettled) ? judge(tx, &unsettled, err) : ERR_OK;
}

enum err_code cells_settle(struct tx *tx, struct err *err)
{
    enum err_code code = ERR_OK;

    while (tx->unsettled_count > 0 && code == ERR_OK) {
        code = cells_settle_one(tx, tx->unsettled[0].cell, err);
    }
    tx->settles = false;
    return code;
}
