#include "db/inputs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "db/case_keys.h"
#include "db/cases/challenges.h"
#include "db/cells.h"
#include "db/cells_judge.h"
#include "db/jobs_progress.h"
#include "db/runs.h"
#include "db/tx.h"
#include "db/upkeep/summaries.h"

void case_inputs_cause(const char *digest, const char *wanted, char *ret_cause,
                       size_t size)
{
    snprintf(ret_cause, size, "its inputs have digest %s, those of the case have %s",
             digest, wanted);
}

/* Runs whose outcome changed: where they count. */
struct touched {
    struct touched_run {
        char id[ID_SIZE];
        int64_t cell, job;
        int item;
    } * runs;
    int count;
};

static enum err_code collect(struct query *q, struct touched *touched, struct err *err)
{
    while (query_step(q)) {
        struct touched_run *run;

        touched->runs = xgrow(touched->runs, touched->count, sizeof *touched->runs);
        run = &touched->runs[touched->count++];
        query_take(q, run->id, &run->cell, &run->job, &run->item);
    }
    return query_end(q, err);
}

#define OF_SIBLINGS "case_key IN (SELECT number FROM case_key WHERE siblings = ?1)"
#define SUMMARIES_OF_SIBLINGS                                                            \
    "cell IN (SELECT c.id FROM case_key k JOIN cell c ON c.case_key = k.number"          \
    " WHERE k.siblings = ?1)"

static enum err_code refuse_runs(struct tx *tx, int64_t siblings, const char *digest,
                                 struct touched *touched, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "UPDATE run SET outcome = 'invalid', refused = 1,"
                " cause = format('its inputs have digest %s, those of the case have %s',"
                " input_digest, ?2) WHERE " OF_SIBLINGS
                " AND outcome = 'completed' AND input_digest <> ?2"
                " AND sum IS " RUN_SUM " RETURNING id, cell, job, item",
                siblings, digest);
    if (collect(&q, touched, err) != ERR_OK) {
        return err->code;
    }
    query_begin(&q, tx,
                "UPDATE run_summary SET refused = 1, sum = " SUMMARY_SUM_IF(
                    "1") " WHERE " SUMMARIES_OF_SIBLINGS
                         " AND NOT refused AND input_digest <> ?2 AND sum IS " SUMMARY_SUM
                         " RETURNING '', cell, job, item",
                siblings, digest);
    return collect(&q, touched, err);
}

/* DIGEST "": all that were refused. */
static enum err_code restore_runs(struct tx *tx, int64_t siblings, const char *digest,
                                  struct touched *touched, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "UPDATE run SET outcome = 'completed', refused = 0, cause = NULL"
                " WHERE " OF_SIBLINGS
                " AND refused AND (?2 IS NULL OR input_digest = ?2)"
                " AND sum IS " RUN_SUM " RETURNING id, cell, job, item",
                siblings, or_null(digest));
    if (collect(&q, touched, err) != ERR_OK) {
        return err->code;
    }
    query_begin(&q, tx,
                "UPDATE run_summary SET refused = 0, sum = " SUMMARY_SUM_IF(
                    "0") " WHERE " SUMMARIES_OF_SIBLINGS
                         " AND refused AND (?2 IS NULL OR input_digest = ?2)"
                         " AND sum IS " SUMMARY_SUM " RETURNING '', cell, job, item",
                siblings, or_null(digest));
    return collect(&q, touched, err);
}

/* None of them was damaged. */
static enum err_code seal(struct tx *tx, const struct touched *touched, struct err *err)
{
    for (int i = 0; i < touched->count; i++) {
        if (touched->runs[i].id[0] && runs_seal(tx, touched->runs[i].id, err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

/* Each cell and each item once: the first of its kind in the list stands for it. */
static enum err_code follow(struct tx *tx, const struct touched *touched, int64_t now_ms,
                            struct err *err)
{
    for (int i = 0; i < touched->count; i++) {
        const struct touched_run *run = &touched->runs[i];
        bool new_cell = true, new_item = true;

        for (int j = 0; j < i; j++) {
            const struct touched_run *other = &touched->runs[j];

            new_cell = new_cell && other->cell != run->cell;
            new_item = new_item && (other->job != run->job || other->item != run->item);
        }
        if ((new_cell && cells_rebuild(tx, run->cell, now_ms, err) != ERR_OK) ||
            (new_item && jobs_recount_failed(tx, run->job, run->item, err) != ERR_OK)) {
            return err->code;
        }
    }
    return ERR_OK;
}

enum err_code case_inputs_settle(struct tx *tx, int64_t siblings,
                                 const struct inputs *inputs, int64_t now_ms,
                                 struct err *err)
{
    struct touched touched = { NULL, 0 };
    enum err_code code = challenges_recount(tx, siblings, err);

    if (code == ERR_OK) {
        code = restore_runs(tx, siblings, inputs->digest, &touched, err);
    }

    if (code == ERR_OK && !inputs->contested) {
        code = refuse_runs(tx, siblings, inputs->digest, &touched, err);
    }
    if (code == ERR_OK) {
        code = seal(tx, &touched, err);
    }
    if (code == ERR_OK) {
        code = follow(tx, &touched, now_ms, err);
    }
    free(touched.runs);
    return code == ERR_OK ? cells_judge_siblings(tx, siblings, now_ms, err) : code;
}

/* Whether it has runs, and, unless DIGEST is "", runs with such inputs. */
static enum err_code check_decision(struct tx *tx, int64_t siblings, const char *digest,
                                    struct err *err)
{
    int64_t runs = 0, alike = 0;

    if (tx_fetch(tx, TX_TARGETS(&runs, &alike), err,
                 "SELECT count(*), count(*) FILTER (WHERE digest = ?2) FROM case_input"
                 " WHERE siblings = ?1",
                 siblings, digest) != ERR_OK) {
        return err->code;
    }
    if (!runs) {
        return err_set(err, ERR_NOT_FOUND, "no run of case %" PRId64 " completed",
                       siblings);
    }
    return !digest[0] || alike ? ERR_OK
                               : err_set(err, ERR_INVALID,
                                         "no run of case %" PRId64
                                         " has inputs with "
                                         "digest %s",
                                         siblings, digest);
}

enum err_code case_inputs_decide(struct tx *tx, int64_t siblings, const char *digest,
                                 const char *reason, int64_t now_ms, struct err *err)
{
    struct inputs inputs;

    if (check_decision(tx, siblings, digest, err) != ERR_OK ||
        tx_run(tx, err,
               "INSERT INTO input_decision (siblings, digest, reason, at_ms)"
               " VALUES (?, ?, ?, ?)",
               siblings, or_null(digest), reason, now_ms) != ERR_OK ||
        case_inputs_load(tx, siblings, &inputs, err) != ERR_OK) {
        return err->code;
    }
    return case_inputs_settle(tx, siblings, &inputs, now_ms, err);
}
