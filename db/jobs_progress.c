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
    bool ends_job;         /* the job ends with its last item */
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
        " i.given_up_reason IS NOT NULL, j.stop_when_varies, NOT EXISTS"
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

static enum err_code job_store(struct tx *tx, const struct jobs_answer *answer,
                               const struct item *before, const struct item *after,
                               bool *ret_finished, struct err *err)
{
    struct query q;
    bool closed = item_is_open(before) && !item_is_open(after);
    bool ends = closed && after->ends_job;

    query_begin(&q, tx,
                "UPDATE job SET runs_total = runs_total + ?1, runs_done = runs_done + ?2,"
                " runs_failed = runs_failed + ?3, items_open = items_open - ?4,"
                " state = CASE WHEN ?7 AND items_open = 1 AND state IN ('queued',"
                " 'running') THEN 'finished' ELSE state END,"
                " finished_ms = CASE WHEN ?7 AND items_open = 1 AND state IN ('queued',"
                " 'running') THEN max(created_ms, ?5) ELSE finished_ms END"
                " WHERE number = ?6 RETURNING items_open = 0 AND state = 'finished'",
                item_total(after) - item_total(before),
                after->answered - before->answered, after->failed - before->failed,
                closed, answer->now_ms, answer->job, ends);
    if (query_step(&q)) {
        *ret_finished = query_take_int(&q) && ends;
    }
    return query_run(&q, err);
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
    return jobs_add_event(tx, answer->job, answer->now_ms, err);
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
