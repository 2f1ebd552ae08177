/* Cells from nothing: cells_rebuild of db/cells.h. */
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/mem.h"
#include "db/cases/challenge_counts.h"
#include "db/cells.h"
#include "db/cells_judge.h"
#include "db/integrity/quarantine.h"
#include "db/runs.h"
#include "db/tx.h"
#include "db/upkeep/summaries.h"

static enum err_code forget_rows(struct tx *tx, int64_t cell, struct err *err)
{
    static const char *const forget[] = { "DELETE FROM cell_digest WHERE cell = ?",
                                          "DELETE FROM cell_device WHERE cell = ?",
                                          "DELETE FROM cell_device_digest WHERE cell = ?",
                                          "DELETE FROM cell_alike WHERE cell = ?",
                                          "DELETE FROM cell_algorithm WHERE cell = ?",
                                          "DELETE FROM cell_time WHERE cell = ?" };

    for (int i = 0; i < COUNT_OF(forget); i++) {
        if (tx_run(tx, err, forget[i], cell) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

#define FORGET_INTEGER(column, member, what) row->member = 0;
#define FORGET_TEXT(column, member, what)    row->member[0] = '\0';

static void forget_counts(struct cell_row *row)
{
    CELL_INTEGERS(FORGET_INTEGER)
    CELL_TEXTS(FORGET_TEXT)
    row->cell.evidence.varied = false;
}

struct run_list {
    char (*ids)[ID_SIZE];
    int count;
};

static enum err_code list_runs(struct tx *tx, int64_t cell, struct run_list *ret_list,
                               struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT id FROM run WHERE cell = ? AND outcome IS NOT NULL ORDER BY id",
                cell);
    while (query_step(&q)) {
        ret_list->ids = xgrow(ret_list->ids, ret_list->count, sizeof *ret_list->ids);
        query_take_text(&q, ret_list->ids[ret_list->count++], ID_SIZE);
    }
    return query_end(&q, err);
}

struct digest_list {
    struct run_digest *digests;
    int count;
};

static void add_digest(void *arg, const struct run_digest *digest)
{
    struct digest_list *list = arg;

    list->digests = xgrow(list->digests, list->count, sizeof *list->digests);
    list->digests[list->count++] = *digest;
}

static enum err_code fold_again(struct tx *tx, struct cell_row *row, const char *id,
                                struct err *err)
{
    struct digest_list list = { NULL, 0 };
    struct run_record run;
    enum err_code code = runs_get(tx, id, &run, err);

    if (code == ERR_OK && run.damaged) {
        return quarantine_run(tx, id, row->cell.id, run.finished_ms, err);
    }
    if (code == ERR_OK) {
        code = runs_each_digest(tx, id, add_digest, &list, err);
    }
    if (code == ERR_OK) {
        code = cells_fold_counts(tx, row, &run, list.digests, list.count, err);
    }
    free(list.digests);
    return code;
}

struct summary_list {
    struct run_summary *summaries;
    int count;
};

static void add_summary(void *arg, const struct run_summary *summary)
{
    struct summary_list *list = arg;

    list->summaries = xgrow(list->summaries, list->count, sizeof *list->summaries);
    list->summaries[list->count++] = *summary;
}

static enum err_code fold_summaries(struct tx *tx, struct cell_row *row, struct err *err)
{
    struct summary_list list = { NULL, 0 };
    enum err_code code = summaries_each(tx, row->cell.id, add_summary, &list, err);

    for (int i = 0; i < list.count && code == ERR_OK; i++) {
        const struct run_summary *s = &list.summaries[i];

        code = s->damaged ? quarantine_run(tx, s->first_run, s->cell, s->last_ms, err)
                          : cells_fold_summary(tx, row, s, err);
    }
    free(list.summaries);
    return code;
}

static enum err_code fold_all(struct tx *tx, struct cell_row *row, struct err *err)
{
    struct run_list list = { NULL, 0 };
    enum err_code code = list_runs(tx, row->cell.id, &list, err);

    for (int i = 0; i < list.count && code == ERR_OK; i++) {
        code = fold_again(tx, row, list.ids[i], err);
    }
    free(list.ids);
    if (code == ERR_OK) {
        code = fold_summaries(tx, row, err);
    }
    /* Folding counts what completed since a failure from all stored runs, also from those
     * that it has not come to yet. */
    return code == ERR_OK ? cells_count_since_failure(tx, row, err) : code;
}

enum err_code cells_rebuild(struct tx *tx, int64_t id, int64_t now_ms, struct err *err)
{
    struct cell_row row;
    struct judgement judgement;
    int64_t digests;
    bool changed;

    if (cell_rows_load(tx, id, &row, err) != ERR_OK ||
        forget_rows(tx, id, err) != ERR_OK) {
        return err->code;
    }
    digests = row.cell.evidence.distinct_digests;
    forget_counts(&row);
    if (fold_all(tx, &row, err) != ERR_OK ||
        challenges_count(tx, id, NULL, &row.cell.evidence.challenges, err) != ERR_OK ||
        cell_rows_judge(tx, &row, &judgement, err) != ERR_OK) {
        return err->code;
    }
    changed = judgement.verdict != row.cell.verdict;
    if (cell_rows_store(tx, &row, &judgement, changed ? now_ms : row.cell.changed_ms,
                        err) != ERR_OK ||
        cells_store_dissenters(tx, &row, &judgement, "", now_ms, err) != ERR_OK ||
        ((changed || digests != row.cell.evidence.distinct_digests) &&
         cells_add_change(tx, &row, &judgement, "", now_ms, err) != ERR_OK)) {
        return err->code;
    }
    return row.cell.is_control ? cells_judge_dependants(tx, id, "", now_ms, err) : ERR_OK;
}
