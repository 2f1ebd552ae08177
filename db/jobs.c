#include "db/jobs.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/evidence/verdict.h"
#include "db/captures.h"
#include "db/case_keys.h"
#include "db/cells_judge.h"
#include "db/jobs_progress.h"
#include "db/localisations.h"
#include "db/tx.h"

#define JOB_COLUMNS                                                                      \
    "number, id, state, priority, survey, stop_when_varies, iterations, timeout_ms,"     \
    " created_ms, finished_ms, runs_total, runs_done, runs_failed, request,"             \
    " (SELECT l.runs_min FROM localisation l WHERE l.job = number),"                     \
    " (SELECT json_object('state', CASE WHEN job.state = 'cancelled' AND l.ended_ms"     \
    " IS NULL THEN 'cancelled' ELSE l.state END, 'root', json_extract(l.search, "        \
    "'$.root'),"                                                                         \
    " 'href', '/v1/jobs/' || id || '/localisation') FROM localisation l"                 \
    " WHERE l.job = number)"

/* Without items; RET_JOB->request and ->localisation are borrowed from Q. */
static void take_job(struct query *q, struct job *ret_job, int64_t *ret_number)
{
    *ret_job = (struct job){ 0 };
    *ret_number = query_take_int(q);
    query_take_text(q, ret_job->id, sizeof ret_job->id);
    ret_job->state = job_state_parse(query_borrow_text(q));
    if (job_priority_parse(query_borrow_text(q), &ret_job->priority) != 0) {
        ret_job->priority = JOB_BACKGROUND;
    }
    query_take(q, &ret_job->survey, &ret_job->stop_when_varies, &ret_job->iterations,
               &ret_job->timeout_ms, &ret_job->created_ms, &ret_job->finished_ms,
               &ret_job->runs_total, &ret_job->runs_done, &ret_job->runs_failed);
    ret_job->request = (char *)query_borrow_text(q);
    ret_job->localise_runs = (int)query_take_int(q);
    ret_job->localisation = query_next_is_null(q) ? NULL : (char *)query_borrow_text(q);
}

static void take_item(struct query *q, struct job_item *ret_item)
{
    *ret_item = (struct job_item){ 0 };
    ret_item->seq = (int)query_take_int(q);
    case_keys_take(q, &ret_item->key);
    query_take(q, &ret_item->is_control, ret_item->kind, ret_item->no_control,
               &ret_item->unseeded, ret_item->device, ret_item->stack);
    subject_parse(query_borrow_text(q), &ret_item->subject);
    query_take(q, ret_item->subject_name);
    run_options_read(query_borrow_text(q), &ret_item->options);
    query_take(q, &ret_item->timeout_ms, &ret_item->runs_wanted, &ret_item->runs_answered,
               &ret_item->runs_failed, &ret_item->runs_unanswered);
    ret_item->given_up = !query_next_is_null(q);
    query_take(q, ret_item->given_up_reason, &ret_item->milliseconds);
}

static enum err_code load_items(struct tx *tx, int64_t number, struct job *job,
                                struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT i.seq, " CASE_KEY_COLUMNS
                ", k.is_control, k.kind, k.no_control, k.unseeded, i.device,"
                " i.stack, i.subject, i.subject_name, i.options, i.timeout_ms, "
                "i.runs_wanted, i.runs_answered, "
                "i.runs_failed,"
                " i.runs_unanswered, i.given_up_reason, i.milliseconds"
                " FROM job_item i JOIN case_key k ON k.number = i.case_key"
                " WHERE i.job = ? ORDER BY i.seq",
                number);
    while (query_step(&q)) {
        job->items = xgrow(job->items, job->item_count, sizeof *job->items);
        take_item(&q, &job->items[job->item_count++]);
    }
    return query_end(&q, err);
}

enum err_code jobs_get(struct tx *tx, const char *id, struct job *ret_job,
                       struct err *err)
{
    struct query q;
    int64_t number = 0;

    *ret_job = (struct job){ 0 };
    query_begin(&q, tx, "SELECT " JOB_COLUMNS " FROM job WHERE id = ?", id);
    if (query_step(&q)) {
        take_job(&q, ret_job, &number);
        ret_job->request = xstrdup(ret_job->request);
        ret_job->localisation =
            ret_job->localisation ? xstrdup(ret_job->localisation) : NULL;
    }
    if (query_end(&q, err) != ERR_OK) {
        goto failed;
    }
    if (!number) {
        err_set(err, ERR_NOT_FOUND, "no job %s", id);
        goto failed;
    }
    if (load_items(tx, number, ret_job, err) != ERR_OK) {
        goto failed;
    }
    return ERR_OK;
failed:
    job_release(ret_job);
    return err->code;
}

enum err_code jobs_list(struct tx *tx, const char *before, bool requested, int limit,
                        void (*visit)(void *arg, const struct job *job), void *arg,
                        struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                requested ? "SELECT " JOB_COLUMNS
                            " FROM job WHERE id < ?"
                            " AND (priority <> 'background' OR survey = 1)"
                            " ORDER BY id DESC LIMIT ?"
                          : "SELECT " JOB_COLUMNS
                            " FROM job WHERE id < ? ORDER BY id DESC"
                            " LIMIT ?",
                before && *before ? before : "~", limit);
    while (query_step(&q)) {
        struct job job;
        int64_t number;

        take_job(&q, &job, &number);
        visit(arg, &job);
    }
    return query_end(&q, err);
}

enum err_code jobs_each_open(struct tx *tx,
                             void (*visit)(void *arg, const struct job *job), void *arg,
                             struct err *err)
{
    struct query q;
    enum err_code code = ERR_OK;

    query_begin(&q, tx,
                "SELECT " JOB_COLUMNS
                " FROM job WHERE state IN ('queued', 'running')"
                " ORDER BY id");
    while (code == ERR_OK && query_step(&q)) {
        struct job job;
        int64_t number;

        take_job(&q, &job, &number);
        code = load_items(tx, number, &job, err);
        if (code == ERR_OK) {
            visit(arg, &job);
        }
        free(job.items);
    }
    return query_close(&q, code, err);
}

enum err_code jobs_cancel(struct tx *tx, const char *id, int64_t now_ms, struct err *err)
{
    static const char *const no_run[2] = { "", "" };
    struct query q;
    int64_t number = 0;
    enum job_state state = JOB_QUEUED;
    bool localises = false;

    query_begin(&q, tx,
                "SELECT number, state, EXISTS (SELECT 1 FROM localisation"
                " WHERE job = number) FROM job WHERE id = ?",
                id);
    if (query_step(&q)) {
        number = query_take_int(&q);
        state = job_state_parse(query_borrow_text(&q));
        localises = query_take_int(&q);
    }
    if (query_end(&q, err) != ERR_OK) {
        return err->code;
    }
    if (!number) {
        return err_set(err, ERR_NOT_FOUND, "no job %s", id);
    }
    if (state == JOB_CANCELLED) {
        return ERR_OK;
    }
    if (state == JOB_FINISHED) {
        return err_set(err, ERR_CONFLICT, "job %s is finished already", id);
    }
    if (tx_run(tx, err,
               "UPDATE job SET state = 'cancelled', finished_ms = max(created_ms, ?)"
               " WHERE number = ?",
               now_ms, number) != ERR_OK ||
        (localises && captures_drop(tx, number, no_run, err) != ERR_OK)) {
        return err->code;
    }
    return jobs_add_event(tx, number, now_ms, err);
}

/* What the key was used for before, if it was. */
static enum err_code find_earlier(struct tx *tx, const struct job *job, const char *key,
                                  char ret_existing_id[ID_SIZE], struct err *err)
{
    struct query q;
    bool equal = true;

    query_begin(&q, tx, "SELECT id, request = ? FROM job WHERE idempotency_key = ?",
                job->request, key);
    if (query_step(&q)) {
        query_take_text(&q, ret_existing_id, ID_SIZE);
        equal = query_take_int(&q);
    }
    if (query_end(&q, err) != ERR_OK) {
        return err->code;
    }
    if (!equal) {
        err_set(err, ERR_CONFLICT,
                "this idempotency key was used for another request: %s", ret_existing_id);
        ret_existing_id[0] = '\0';
        return ERR_CONFLICT;
    }
    return ERR_OK;
}

static enum err_code insert_job(struct tx *tx, const struct job *job, const char *key,
                                int64_t *ret_number, struct err *err)
{
    int64_t total = 0;

    for (int i = 0; i < job->item_count; i++) {
        total += job->items[i].runs_wanted;
    }
    return tx_fetch_int(
        tx, ret_number, err,
        "INSERT INTO job (id, state, priority, survey, stop_when_varies,"
        " iterations, timeout_ms, created_ms, runs_total, items_open, request,"
        " idempotency_key) VALUES (?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " RETURNING number",
        job->id, job_priority_name(job->priority), job->survey, job->stop_when_varies,
        job->iterations, job->timeout_ms, job->created_ms, total, job->item_count,
        job->request, key);
}

static enum err_code insert_item(struct tx *tx, int64_t job, int seq, int64_t now_ms,
                                 const struct job_item *item, struct err *err)
{
    const struct case_declaration declaration = {
        .is_control = item->is_control,
        .kind = item->kind[0] ? item->kind : control_kinds[0],
        .no_control = item->no_control,
        .unseeded = item->unseeded,
    };
    char options[RUN_OPTIONS_SIZE];
    int64_t key;
    bool declared;

    if (case_keys_declare(tx, &item->key, &declaration, &key, &declared, err) != ERR_OK ||
        (declared && cells_judge_siblings(tx, key, now_ms, err) != ERR_OK)) {
        return err->code;
    }
    run_options_write(&item->options, options);
    return tx_run(tx, err,
                  "INSERT INTO job_item (job, seq, case_key, device, stack, subject,"
                  " subject_name, options, timeout_ms, runs_wanted)"
                  " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                  job, seq, key, item->device, item->stack, subject_word(item->subject),
                  item->subject_name, options, item->timeout_ms, item->runs_wanted);
}

enum err_code jobs_insert(struct tx *tx, const struct job *job,
                          const char *idempotency_key, char ret_existing_id[ID_SIZE],
                          struct err *err)
{
    int64_t number = 0;

    ret_existing_id[0] = '\0';
    if (idempotency_key &&
        (find_earlier(tx, job, idempotency_key, ret_existing_id, err) != ERR_OK ||
         ret_existing_id[0])) {
        return ret_existing_id[0] ? ERR_OK : err->code;
    }
    if (job->item_count < 1) {
        return err_set(err, ERR_INVALID, "a job needs at least one case");
    }
    if (insert_job(tx, job, idempotency_key, &number, err) != ERR_OK) {
        return err->code;
    }
    for (int i = 0; i < job->item_count; i++) {
        if (insert_item(tx, number, i, job->created_ms, &job->items[i], err) != ERR_OK) {
            return err_wrap(err, "item %d", i);
        }
    }
    if (job->localise_runs &&
        localisations_insert(tx, number, job->localise_runs, err) != ERR_OK) {
        return err->code;
    }
    return jobs_add_event(tx, number, job->created_ms, err);
}
