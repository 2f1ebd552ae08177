#include "db/cases/challenges.h"

#include <stdlib.h>

#include "daemon/base/mem.h"
#include "db/case_keys.h"
#include "db/cases/challenge_counts.h"
#include "db/cells_judge.h"
#include "db/cells_rows.h"
#include "db/tx.h"

/* An item that a challenge may be made of. */
struct asked {
    bool can;
    struct challenges known;
    int64_t cell; /* in which devices disagree; 0: they do not */
    char device[CASE_TITLE_SIZE];
};

/* What is known of the item's cell, in the environment that its device last reported for
 * its command; nothing is as good as a new cell.  Without a row it cannot be challenged:
 * a crash before any run said its environment would count nowhere. */
static enum err_code load_cell(struct tx *tx, int64_t job, int item, struct asked *ret,
                               struct err *err)
{
    *ret = (struct asked){ .cell = 0 };
    return tx_fetch(
        tx,
        TX_TARGETS(&ret->can, &ret->known.passed, &ret->known.repeated,
                   &ret->known.unchanged, &ret->known.failed, &ret->cell, ret->device),
        err,
        "SELECT 1, c.challenges_passed, c.challenges_repeated, c.challenges_unchanged,"
        " c.challenges_failed,"
        " iif(c.agreement IN ('undecided', 'disagree', 'both'), c.id, 0), i.device"
        " FROM job_item i JOIN case_key k ON k.number = i.case_key"
        " JOIN device_stack_environment d ON d.device = i.device"
        " AND d.stack = i.stack || iif(" IS_EXTERNAL(
            "i") ", '/' || k.workload, '')"
        " LEFT JOIN cell c ON c.case_key = k.number AND c.environment = d.environment"
        " WHERE i.job = ? AND i.seq = ? AND NOT k.unseeded AND NOT (" HAS_REFERENCE(
            "i") ")",
        job, item);
}

/* While devices disagree, those that passed elsewhere may be the wrong ones: what a cell
 * needs is a challenge that the item's own device passed. */
static enum err_code load_known(struct tx *tx, int64_t job, int item, struct asked *ret,
                                struct err *err)
{
    struct challenges own;

    if (load_cell(tx, job, item, ret, err) != ERR_OK || !ret->cell) {
        return err->code;
    }
    if (challenges_count(tx, ret->cell, ret->device, &own, err) == ERR_OK) {
        ret->known.passed = own.passed;
    }
    return err->code;
}

/* The case of the item with another seed.  The latest job of the case says what it is,
 * and a job that requests this one may have said it before. */
static enum err_code make_case(struct tx *tx, int64_t job,
                               const struct run_intent *intent, int64_t *ret_number,
                               struct err *err)
{
    struct case_declaration declaration = { .is_challenge = true };
    struct case_key key;
    char kind[CASE_NAME_SIZE];
    char no_control[CASE_TITLE_SIZE];
    struct query q;
    bool declared;

    query_begin(&q, tx,
                "SELECT " CASE_KEY_COLUMNS
                ", k.is_control, k.kind, k.no_control"
                " FROM job_item i JOIN case_key k ON k.number = i.case_key"
                " WHERE i.job = ? AND i.seq = ?",
                job, intent->item);
    if (query_step(&q)) {
        case_keys_take(&q, &key);
        query_take(&q, &declaration.is_control, kind, no_control);
    }
    if (query_end(&q, err) != ERR_OK) {
        return err->code;
    }
    key.seed = intent->offer.seed;
    declaration.kind = kind;
    declaration.no_control = no_control;
    return case_keys_declare(tx, &key, &declaration, ret_number, &declared, err);
}

enum err_code challenges_begin(struct tx *tx, int64_t job, struct run_intent *intent,
                               int64_t *ret_case_key, struct err *err)
{
    struct asked asked;

    intent->challenge = 0;
    *ret_case_key = 0;
    if (!intent->offer.seed) {
        return ERR_OK;
    }
    if (load_known(tx, job, intent->item, &asked, err) != ERR_OK) {
        return err->code;
    }
    if (!asked.can || !challenge_is_due(&intent->offer, &asked.known)) {
        return ERR_OK;
    }
    intent->challenge = intent->offer.seed;
    return make_case(tx, job, intent, ret_case_key, err);
}

enum err_code challenges_place(struct tx *tx, int64_t job, const struct run_record *run,
                               int64_t *ret_cell, struct err *err)
{
    int64_t case_key = 0, environment = 0;

    *ret_cell = 0;
    if (!run->cell) {
        return ERR_OK;
    }
    if (tx_fetch(
            tx, TX_TARGETS(&case_key, &environment, ret_cell), err,
            "SELECT i.case_key, own.environment, c.id FROM job_item i"
            " JOIN cell own ON own.id = ? LEFT JOIN cell c ON c.case_key = i.case_key"
            " AND c.environment = own.environment WHERE i.job = ? AND i.seq = ?",
            run->cell, job, run->item) != ERR_OK) {
        return err->code;
    }
    return *ret_cell || !outcome_is_answer(run->outcome)
               ? ERR_OK
               : cells_place(tx, case_key, environment, job, run->item, ret_cell, err);
}

static enum err_code recount_one(struct tx *tx, int64_t cell, struct err *err)
{
    struct challenges c;

    if (challenges_count(tx, cell, NULL, &c, err) != ERR_OK) {
        return err->code;
    }
    /* What is not what was stored stays so. */
    if (tx_run(tx, err,
               "UPDATE cell SET challenges_passed = ?, challenges_repeated = ?,"
               " challenges_unchanged = ?, challenges_failed = ?, challenge_run = ?"
               " WHERE id = ? AND sum IS reprod_sum(" CELL_SUM("") ")",
               c.passed, c.repeated, c.unchanged, c.failed, or_null(c.run),
               cell) != ERR_OK ||
        sqlite3_changes(tx->db) == 0) {
        return err->code;
    }
    return tx_run(
        tx, err, "UPDATE cell SET sum = reprod_sum(" CELL_SUM("") ") WHERE id = ?", cell);
}

enum err_code challenges_recount(struct tx *tx, int64_t siblings, struct err *err)
{
    int64_t *cells = NULL;
    int n = 0;
    enum err_code code;
    struct query q;

    query_begin(&q, tx,
                "SELECT c.id FROM case_key k JOIN cell c ON c.case_key = k.number"
                " WHERE k.siblings = ? AND EXISTS (SELECT 1 FROM run r"
                " WHERE r.challenged = c.id)",
                siblings);
    while (query_step(&q)) {
        cells = xgrow(cells, n, sizeof *cells);
        cells[n++] = query_take_int(&q);
    }
    code = query_end(&q, err);
    for (int i = 0; i < n && code == ERR_OK; i++) {
        code = recount_one(tx, cells[i], err);
    }
    free(cells);
    return code;
}
