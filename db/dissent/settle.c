#include "db/dissent/settle.h"

#include <stdlib.h>

#include "daemon/base/mem.h"
#include "db/cases/challenge_counts.h"
#include "db/cells_judge.h"
#include "db/tx.h"

void cells_settle_begin(struct tx *tx)
{
    tx->settles = true;
    tx->unsettled_count = 0;
    tx->progressed_count = 0;
}

/* As arrays grow by their counts, each is as large as its own says. */
static struct unsettled *copy_of(const struct unsettled *list, int count)
{
    struct unsettled *copy = NULL;

    for (int i = 0; i < count; i++) {
        copy = xgrow(copy, i, sizeof *copy);
        copy[i] = list[i];
    }
    return copy;
}

void cells_settle_mark(const struct tx *tx, struct settle_mark *ret_mark)
{
    ret_mark->list = copy_of(tx->unsettled, tx->unsettled_count);
    ret_mark->count = tx->unsettled_count;
    ret_mark->progressed = tx->progressed_count;
}

void cells_settle_back(struct tx *tx, struct settle_mark *mark)
{
    free(tx->unsettled);
    tx->unsettled = copy_of(mark->list, mark->count);
    tx->unsettled_count = mark->count;
    tx->progressed_count = mark->progressed;
}

void cells_settle_release(struct settle_mark *mark)
{
    free(mark->list);
    *mark = (struct settle_mark){ .count = 0 };
}

bool cells_settle_defers(const struct tx *tx, const struct cell *cell, bool confirmed)
{
    return tx->settles && (cell->agreement != DISSENT_NONE || confirmed) &&
           cell->evidence.devices > CELLS_SETTLE_DEVICES;
}

static struct unsettled *find(const struct tx *tx, int64_t cell)
{
    for (int i = 0; i < tx->unsettled_count; i++) {
        if (tx->unsettled[i].cell == cell) {
            return &tx->unsettled[i];
        }
    }
    return NULL;
}

void cells_settle_later(struct tx *tx, const struct unsettled *unsettled)
{
    struct unsettled *known = find(tx, unsettled->cell);

    if (known) {
        copy_text(known->run, sizeof known->run, unsettled->run);
        known->now_ms = unsettled->now_ms;
        return;
    }
    tx->unsettled = xgrow(tx->unsettled, tx->unsettled_count, sizeof *tx->unsettled);
    tx->unsettled[tx->unsettled_count++] = *unsettled;
}

void cells_settle_judged(struct tx *tx, int64_t cell)
{
    struct unsettled *known = find(tx, cell);

    if (known) {
        *known = tx->unsettled[--tx->unsettled_count];
    }
}

bool cells_settle_waits(const struct tx *tx, int64_t cell)
{
    return find(tx, cell) != NULL;
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
    struct unsettled *found = find(tx, cell);
    struct unsettled unsettled;

    if (!found) {
        return ERR_OK;
    }
    unsettled = *found;
    cells_settle_judged(tx, cell);
    return judge(tx, &unsettled, err);
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
