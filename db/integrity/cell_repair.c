#include "db/integrity/cell_repair.h"

#include <stdio.h>
#include <string.h>

#include "db/cells.h"
#include "db/cells_judge.h"
#include "db/cells_rows.h"
#include "db/integrity/quarantine.h"
#include "db/runs.h"
#include "db/tx.h"

/* The runs of CELL that are damaged; how many. */
static enum err_code put_runs(struct tx *tx, int64_t cell, int64_t now_ms,
                              int64_t *ret_count, struct err *err)
{
    *ret_count = 0;
    if (tx_run(tx, err,
               "INSERT INTO quarantine (cell, run, reason, found_ms)"
               " SELECT r.cell, r.id, format('run %s is not what was stored', r.id), ?"
               " FROM run r WHERE r.cell = ? AND " RUN_DAMAGED_R
               " ON CONFLICT DO NOTHING",
               now_ms, cell) != ERR_OK) {
        return err->code;
    }
    return tx_fetch_int(tx, ret_count, err,
                        "SELECT count(*) FROM quarantine WHERE cell = ? AND run <> ''",
                        cell);
}

static bool count_alike(const struct evidence *a, const struct evidence *b)
{
    return memcmp(a->runs, b->runs, sizeof a->runs) == 0 &&
           a->iterations == b->iterations && a->distinct_digests == b->distinct_digests;
}

static enum err_code isolate(struct tx *tx, int64_t cell, const char *reason,
                             int64_t now_ms, struct err *err)
{
    if (tx_run(tx, err, "ROLLBACK TO repair") != ERR_OK ||
        tx_run(tx, err, "RELEASE repair") != ERR_OK ||
        quarantine_put(tx, cell, "", reason, now_ms, err) != ERR_OK) {
        return err->code;
    }
    return cells_judge_again(tx, cell, now_ms, err);
}

/* Whose a cell is is known from its runs, too. */
static enum err_code find_owner(struct tx *tx, int64_t cell, bool *ret_same,
                                struct err *err)
{
    *ret_same = false;
    if (tx_run(tx, err,
               "UPDATE cell SET (subject, subject_name, has_reference) ="
               " (SELECT i.subject, i.subject_name, " HAS_REFERENCE(
                   "i") " FROM run r JOIN job_item i ON i.job = r.job AND i.seq = r.item"
                        " WHERE r.cell = cell.id LIMIT 1)"
                        " WHERE id = ? AND EXISTS (SELECT 1 FROM run r WHERE r.cell = "
                        "cell.id)",
               cell) != ERR_OK) {
        return err->code;
    }
    return tx_fetch(tx, TX_TARGETS(ret_same), err,
                    "SELECT NOT EXISTS (SELECT 1 FROM run r WHERE r.cell = c.id AND"
                    " (r.case_key <> c.case_key OR r.environment <> c.environment))"
                    " FROM cell c WHERE c.id = ?",
                    cell);
}

/* When its verdict became what it is, as its history has it. */
static enum err_code find_change(struct tx *tx, int64_t cell, struct err *err)
{
    return tx_run(tx, err,
                  "UPDATE cell SET changed_ms = ifnull((SELECT min(h.at_ms)"
                  " FROM cell_history h WHERE h.cell = cell.id AND h.at_ms >"
                  " ifnull((SELECT max(o.at_ms) FROM cell_history o"
                  " WHERE o.cell = cell.id AND o.verdict <> cell.verdict), -1)),"
                  " changed_ms) WHERE id = ?",
                  cell) == ERR_OK
               ? tx_run(tx, err,
                        "UPDATE cell SET sum = reprod_sum(" CELL_SUM("") ") WHERE id = ?",
                        cell)
               : err->code;
}

#define OTHER_RUNS "its runs on record are not those that it counted"

/* Its runs cannot be folded without what they refer to, which is missing. */
static enum err_code isolate_unread(struct tx *tx, int64_t cell, int64_t now_ms,
                                    struct err *err)
{
    char reason[DAMAGED_WORDS_SIZE];

    snprintf(reason, sizeof reason, "its runs on record cannot be read: %.100s",
             err->message);
    return isolate(tx, cell, reason, now_ms, err);
}

/* In a savepoint: whether it may be done is known when it is. */
static enum err_code try_rebuild(struct tx *tx, const struct cell_row *before,
                                 int64_t now_ms, enum cell_repair *ret_repair,
                                 struct err *err)
{
    struct cell_row after;
    int64_t id = before->cell.id;

    bool same = true;

    if (tx_run(tx, err, "SAVEPOINT repair") != ERR_OK ||
        (before->damaged && find_owner(tx, id, &same, err) != ERR_OK)) {
        return err->code;
    }
    if (!same) {
        *ret_repair = CELL_ISOLATED;
        return isolate(tx, id, OTHER_RUNS, now_ms, err);
    }
    if (cells_rebuild(tx, id, now_ms, err) != ERR_OK ||
        cell_rows_load(tx, id, &after, err) != ERR_OK) {
        *ret_repair = CELL_ISOLATED;
        return err->code == ERR_NOT_FOUND ? isolate_unread(tx, id, now_ms, err)
                                          : err->code;
    }
    if (!before->damaged && !count_alike(&before->cell.evidence, &after.cell.evidence)) {
        *ret_repair = CELL_ISOLATED;
        return isolate(tx, id, OTHER_RUNS, now_ms, err);
    }
    *ret_repair = CELL_REBUILT;
    if (before->damaged && find_change(tx, id, err) != ERR_OK) {
        return err->code;
    }
    return tx_run(tx, err, "RELEASE repair");
}

enum err_code cell_repair(struct tx *tx, int64_t cell, int64_t now_ms,
                          enum cell_repair *ret_repair, struct err *err)
{
    struct cell_row row;
    int64_t damaged;
    enum err_code code = cell_rows_load(tx, cell, &row, err);

    *ret_repair = CELL_ISOLATED;
    if (code == ERR_NOT_FOUND) {
        return quarantine_put(tx, cell, "", "its case or its environment is missing",
                              now_ms, err);
    }
    if (code != ERR_OK || put_runs(tx, cell, now_ms, &damaged, err) != ERR_OK) {
        return err->code;
    }
    return damaged ? cells_judge_again(tx, cell, now_ms, err)
                   : try_rebuild(tx, &row, now_ms, ret_repair, err);
}
