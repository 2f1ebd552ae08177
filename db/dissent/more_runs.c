#include "db/dissent/more_runs.h"

#include <string.h>

#include "db/dissent/cell_devices.h"
#include "db/dissent/settle.h"
#include "db/dissent/unsettled.h"
#include "db/tx.h"

/* The items of a job with the case, conditions and stack of item ?2 of job ?1. */
#define ALIKE                                                                            \
    " FROM job_item o JOIN job_item i ON i.job = o.job AND i.case_key = o.case_key"      \
    " AND i.options = o.options AND i.stack = o.stack WHERE o.job = ?1 AND o.seq = ?2"

/* Whether ITEM "i" measured cell ?3 in this job: devices of another environment are not
 * waited for, nor those that did not begin. */
#define MEASURES_CELL                                                                    \
    " AND EXISTS (SELECT 1 FROM cell_device d WHERE d.cell = ?3"                         \
    " AND d.device = i.device AND d.options = i.options"                                 \
    " AND d.last_run > (SELECT id FROM job WHERE number = ?1))"

/* The first item from FROM on that measures RUN's cell in the same way and is not done,
 * not counting RUN's own; -1: there is none. */
static enum err_code find_open(struct tx *tx, const struct run_record *run, int64_t job,
                               int from, int *ret_item, struct err *err)
{
    *ret_item = -1;
    return tx_fetch(tx, TX_TARGETS(ret_item), err,
                    "SELECT i.seq" ALIKE
                    " AND i.seq >= ?4 AND i.given_up_reason IS NULL"
                    " AND i.runs_answered + (i.seq = ?2) < i.runs_wanted" MEASURES_CELL
                    " ORDER BY i.seq LIMIT 1",
                    job, run->item, run->cell, from);
}

/* Whether RUN is the last of those that the job wants of its cell so far.  Where it was
 * seen that it was not is looked at first: many devices are done one after another. */
static enum err_code is_last(struct tx *tx, const struct run_record *run, int64_t job,
                             bool *ret_last, struct err *err)
{
    int *seen = &tx->seen_open[(uint64_t)(job * 31 + run->cell) % TX_SEEN_OPEN];
    int item = -1;

    if (find_open(tx, run, job, *seen, &item, err) != ERR_OK ||
        (item < 0 && *seen > 0 && find_open(tx, run, job, 0, &item, err) != ERR_OK)) {
        return err->code;
    }
    *ret_last = item < 0;
    *seen = item < 0 ? 0 : item;
    return ERR_OK;
}

#define NOT_SETTLED "agreement IN ('undecided', 'disagree')"

/* Whether RUN's own item is done with it, in a job that may grow, and what its cell shows
 * is not settled, or not judged yet. */
static enum err_code may_grow(struct tx *tx, const struct run_record *run, int64_t job,
                              bool *ret_may, struct err *err)
{
    *ret_may = false;
    return tx_fetch(tx, TX_TARGETS(ret_may), err,
                    "SELECT (SELECT iif(?4, agreement <> 'none', " NOT_SETTLED
                    ") FROM cell WHERE id = ?3)"
                    " AND (i.runs_answered + 1 >= i.runs_wanted"
                    " OR i.given_up_reason IS NOT NULL)"
                    " AND (SELECT state = 'running' FROM job WHERE number = ?1)"
                    " AND NOT EXISTS (SELECT 1 FROM localisation WHERE job = ?1)"
                    " FROM job_item i WHERE i.job = ?1 AND i.seq = ?2",
                    job, run->item, run->cell, unsettled_has(tx, run->cell));
}

/* Whether RUN is the last of those that the job wants of its cell so far, and what they
 * show is not settled. */
static enum err_code is_due(struct tx *tx, const struct run_record *run, int64_t job,
                            bool *ret_due, struct err *err)
{
    bool last = false;
    enum err_code code = may_grow(tx, run, job, &last, err);

    *ret_due = false;
    if (code == ERR_OK && last) {
        code = is_last(tx, run, job, &last, err);
    }
    if (code == ERR_OK && last) {
        code = cells_settle_one(tx, run->cell, err);
    }
    return code == ERR_OK && last
               ? tx_fetch(tx, TX_TARGETS(ret_due), err,
                          "SELECT " NOT_SETTLED " FROM cell WHERE id = ?", run->cell)
               : code;
}

/* The item of run's kind on DEVICE that can still grow; -1: there is none. */
static enum err_code find_item(struct tx *tx, const struct run_record *run, int64_t job,
                               const char *device, int *ret_item, bool *ret_open,
                               struct err *err)
{
    *ret_item = -1;
    return tx_fetch(tx, TX_TARGETS(ret_item, ret_open), err,
                    "SELECT i.seq, i.runs_answered < i.runs_wanted" ALIKE
                    " AND i.device = ?3 AND i.given_up_reason IS NULL"
                    " AND i.runs_more < ?4",
                    job, run->item, device, MORE_RUNS_MAX);
}

static enum err_code grow(struct tx *tx, int64_t job, int item, bool is_open,
                          struct run_effect *effect, struct err *err)
{
    int64_t wanted = 0;

    if (tx_fetch_int(tx, &wanted, err,
                     "UPDATE job_item SET runs_wanted = max(runs_wanted, runs_answered)"
                     " + ?3, runs_more = runs_more + ?3 WHERE job = ?1 AND seq = ?2"
                     " RETURNING runs_wanted",
                     job, item, MORE_RUNS_STEP) != ERR_OK) {
        return err->code;
    }
    effect->more[effect->more_count].item = item;
    effect->more[effect->more_count++].runs_wanted = (int)wanted;
    return tx_run(
        tx, err,
        "UPDATE job SET runs_total = runs_total + ?, items_open = items_open + ?"
        " WHERE number = ?",
        MORE_RUNS_STEP, !is_open, job);
}

static enum err_code grow_wanted(struct tx *tx, const struct run_record *run, int64_t job,
                                 const char *options, struct run_effect *effect,
                                 struct err *err)
{
    struct cell_devices devices;
    enum err_code code = cell_devices_load(tx, run->cell, &devices, err);

    for (int i = 0; i < devices.count && code == ERR_OK; i++) {
        const struct dissent_row *row = &devices.rows[i];
        int item = -1;
        bool is_open = false;

        if (row->wanted && strcmp(row->options, options) == 0 &&
            effect->more_count < RUNS_MORE_MAX) {
            code = find_item(tx, run, job, row->device, &item, &is_open, err);
        }
        if (code == ERR_OK && item >= 0) {
            code = grow(tx, job, item, is_open, effect, err);
        }
    }
    cell_devices_release(&devices);
    return code;
}

enum err_code more_runs_ask(struct tx *tx, const struct run_record *run,
                            enum dissent_state agreement, int64_t job,
                            struct run_effect *effect, struct err *err)
{
    char options[RUN_OPTIONS_SIZE] = "";
    enum err_code code;
    bool due;

    if (run->outcome != OUTCOME_COMPLETED || agreement == DISSENT_NONE) {
        return ERR_OK;
    }
    code = is_due(tx, run, job, &due, err);
    if (code == ERR_OK && due) {
        code = tx_fetch(tx, TX_TARGETS(options), err,
                        "SELECT options FROM job_item WHERE job = ? AND seq = ?", job,
                        run->item);
    }
    return code != ERR_OK || !due ? code
                                  : grow_wanted(tx, run, job, options, effect, err);
}
