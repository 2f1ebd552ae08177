#include "db/jobs_progress.h"

#include <stdio.h>

#include "daemon/base/mem.h"
#include "daemon/jobs/job.h"
#include "db/tx.h"

/* The part of an item that counting changes. */
struct item {
    int64_t wanted, answered, failed, unanswered;
    bool given_up;
    char given_up_reason[CASE_TITLE_SIZE];
    bool stop_when_varies; /* the job's */
    bool ends_job;         /* it is the job's last, which is open and ends with it */
};

static enum err_code item_load(struct tx *tx, int64_t job, int seq, struct item *ret_item,
                               struct err *err)
{
    struct item *i = ret_item;

    i->given_up_reason[0] = '\0';
    return tx_fetch(
        tx,
        TX_TARGETS(&i->wanted, &i->answered, &i->failed, &i->unanswered, &i->given_up,
                   &i->stop_when_varies, &i->ends_job),
        err,
        "SELECT i.runs_wanted, i.runs_answered, i.runs_failed, i.runs_unanswered,"
        " i.given_up_reason IS NOT NULL, j.stop_when_varies,"
        " j.items_open = 1 AND j.state IN ('queued', 'running') AND NOT EXISTS"
        " (SELECT 1 FROM localisation l WHERE l.job = j.number"
        " AND l.ended_ms IS NULL)"
        " FROM job_item i JOIN job j ON j.number = i.job"
        " WHERE i.job = ? AND i.seq = ?",
        job, seq);
}

static bool item_is_open(const struct item *item)
{
    return !item->given_up && item->answered < item->wanted;
}

static int64_t item_total(const struct item *item)
{
    return item->given_up || item->answered > item->wanted ? item->answered
                                                           : item->wanted;
}

static void give_up_if_due(struct item *item, const struct jobs_answer *answer)
{
    char *reason = item->given_up_reason;
    size_t size = sizeof item->given_up_reason;

    if (!item_is_open(item)) {
        return;
    }
    if (answer->outcome == OUTCOME_UNSUPPORTED) {
        item->given_up = true;
        snprintf(reason, size, "unsupported: %s", answer->cause);
    } else if (item->unanswered > RUNS_LOST_MAX) {
        item->given_up = true;
        snprintf(reason, size, "%d runs had no answer; the last: %s",
                 (int)item->unanswered, answer->cause);
    } else if (item->stop_when_varies && answer->verdict == VERDICT_VARIES &&
               item->answered >= JOBS_STOP_RUNS) {
        item->given_up = true;
        snprintf(reason, size, "it varies: more runs would show nothing new");
    }
}

static enum err_code item_store(struct tx *tx, const struct jobs_answer *answer,
                                const struct item *item, struct err *err)
{
    return tx_run(tx, err,
                  "UPDATE job_item SET runs_answered = ?, runs_failed = ?,"
                  " runs_unanswered = ?, given_up_reason = ifnull(given_up_reason, ?),"
                  " milliseconds = milliseconds + ? WHERE job = ? AND seq = ?",
                  item->answered, item->failed, item->unanswered,
                  or_null(item->given_up_reason), answer->wall_ns / 1000000, answer->job,
                  answer->item);
}

/* The state has a sum (db/integrity/checksums.h), which counts that grow leave as it is.
 */
static enum err_code job_store(struct tx *tx, const struct jobs_answer *answer,
                               const struct item *before, const struct item *after,
                               bool *ret_finished, struct err *err)
{
    bool closed = item_is_open(before) && !item_is_open(after);

    *ret_finished = closed && before->ends_job;
    if (tx_run(tx, err,
               "UPDATE job SET runs_total = runs_total + ?, runs_done = runs_done + ?,"
               " runs_failed = runs_failed + ?, items_open = items_open - ?"
               " WHERE number = ?",
               item_total(after) - item_total(before), after->answered - before->answered,
               after->failed - before->failed, closed, answer->job) != ERR_OK) {
        return err->code;
    }
    return *ret_finished ? jobs_finish_if_done(tx, answer->job, answer->now_ms, err)
                         : ERR_OK;
}

enum err_code jobs_add_event(struct tx *tx, int64_t number, int64_t now_ms,
                             struct err *err)
{
    return tx_run(tx, err,
                  "INSERT INTO event (at_ms, kind, data) SELECT ?, 'job', json_object("
                  "'id', id, 'state', state, 'runs_done', runs_done, 'runs_total',"
                  " runs_total, 'runs_failed', runs_failed) FROM job WHERE number = ?",
                  now_ms, number);
}

static void tell_later(struct tx *tx, const struct jobs_answer *answer, bool ended)
{
    struct progressed *known = NULL;

    for (int i = 0; i < tx->progressed_count && !known; i++) {
        known = tx->progressed[i].job == answer->job ? &tx->progressed[i] : NULL;
    }
    if (!known) {
        tx->progressed =
            xgrow(tx->progressed, tx->progressed_count, sizeof *tx->progressed);
        known = &tx->progressed[tx->progressed_count++];
        *known = (struct progressed){ .job = answer->job };
    }
    if (!known->ended) {
        known->now_ms = answer->now_ms;
        known->ended = ended;
    }
}

enum err_code jobs_tell_progress(struct tx *tx, struct err *err)
{
    int count = tx->progressed_count;
    enum err_code code = ERR_OK;

    tx->progressed_count = 0;
    for (int i = 0; i < count && code == ERR_OK; i++) {
        code = jobs_add_event(tx, tx->progressed[i].job, tx->progressed[i].now_ms, err);
    }
    return code;
}

enum err_code jobs_count_answer(struct tx *tx, const struct jobs_answer *answer,
                                bool *ret_item_given_up, bool *ret_job_finished,
                                struct err *err)
{
    struct item before = { 0 };
    struct item after;

    *ret_job_finished = false;
    if (item_load(tx, answer->job, answer->item, &before, err) != ERR_OK) {
        return err->code;
    }
    after = before;
    after.answered += outcome_is_answer(answer->outcome);
    after.failed += outcome_is_failure(answer->outcome);
    after.unanswered +=
        answer->outcome == OUTCOME_LOST || answer->outcome == OUTCOME_INFRA;
    give_up_if_due(&after, answer);
    *ret_item_given_up = after.given_up && !before.given_up;
    if (item_store(tx, answer, &after, err) != ERR_OK ||
        job_store(tx, answer, &before, &after, ret_job_finished, err) != ERR_OK) {
        return err->code;
    }
    tell_later(tx, answer, *ret_job_finished);
    return tx->settles ? ERR_OK : jobs_tell_progress(tx, err);
}

enum err_code jobs_give_up(struct tx *tx, int64_t number, int seq, const char *reason,
                           int64_t now_ms, struct err *err)
{
    const struct jobs_answer none = { .job = number, .item = seq, .now_ms = now_ms };
    struct item before = { 0 };
    struct item after;
    bool finished = false;

    if (item_load(tx, number, seq, &before, err) != ERR_OK) {
        return err->code;
    }
    if (!item_is_open(&before)) {
        return ERR_OK;
    }
    after = before;
    after.given_up = true;
    copy_text(after.given_up_reason, sizeof after.given_up_reason, reason);
    return item_store(tx, &none, &after, err) == ERR_OK
               ? job_store(tx, &none, &before, &after, &finished, err)
               : err->code;
}

enum err_code jobs_finish_if_done(struct tx *tx, int64_t number, int64_t now_ms,
                                  struct err *err)
{
    return tx_run(tx, err,
                  "UPDATE job SET state = 'finished',"
                  " finished_ms = max(created_ms, ?) WHERE number = ?"
                  " AND items_open = 0 AND state IN ('queued', 'running')",
                  now_ms, number);
}

enum err_code jobs_recount_failed(struct tx *tx, int64_t number, int seq, struct err *err)
{
    if (tx_run(tx, err,
               "UPDATE job_item SET runs_failed = (SELECT count(*) FROM run"
               " WHERE job = ?1 AND item = ?2 AND NOT challenge AND outcome IN "
               "('timeout', 'crashed',"
               " 'out_of_memory', 'invalid')) + (SELECT ifnull(sum(runs), 0)"
               " FROM run_summary WHERE job = ?1 AND item = ?2 AND refused)"
               " WHERE job = ?1 AND seq = ?2",
               number, seq) != ERR_OK) {
        return err->code;
    }
    return tx_run(tx, err,
                  "UPDATE job SET runs_failed = (SELECT sum(runs_failed) FROM job_item"
                  " WHERE job = ?1) WHERE number = ?1",
                  number);
}
