#include "db/runs.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "db/case_keys.h"
#include "db/jobs_progress.h"
#include "db/tx.h"

static enum err_code set_running(struct tx *tx, int64_t job, int64_t now_ms,
                                 struct err *err)
{
    struct query q;

    query_begin(&q, tx, "UPDATE job SET state = 'running' WHERE number = ?");
    query_bind_int(&q, job);
    if (query_run(&q, err) != ERR_OK) {
        return err->code;
    }
    return jobs_add_event(tx, job, now_ms, err);
}

/* Unknown jobs and items give number 0. */
static enum err_code find_item(struct tx *tx, const struct run_intent *intent,
                               int64_t *ret_job, bool *ret_open, bool *ret_queued,
                               struct err *err)
{
    struct query q;

    *ret_job = 0;
    query_begin(&q, tx,
                "SELECT j.number, j.state IN ('queued', 'running'), j.state = 'queued'"
                " FROM job j JOIN job_item i ON i.job = j.number AND i.seq = ?"
                " WHERE j.id = ?");
    query_bind_int(&q, intent->item);
    query_bind_text(&q, intent->job);
    if (query_step(&q)) {
        *ret_job = query_take_int(&q);
        *ret_open = query_take_int(&q);
        *ret_queued = query_take_int(&q);
    }
    return query_end(&q, err);
}

enum err_code runs_begin(struct tx *tx, const struct run_intent *intent, struct err *err)
{
    struct query q;
    int64_t job;
    bool open = false;
    bool queued = false;

    if (find_item(tx, intent, &job, &open, &queued, err) != ERR_OK) {
        return err->code;
    }
    if (!job) {
        return err_set(err, ERR_NOT_FOUND, "no job %s with item %d", intent->job,
                       intent->item);
    }
    if (!open) {
        return err_set(err, ERR_CONFLICT, "job %s is not open", intent->job);
    }
    query_begin(&q, tx,
                "INSERT INTO run (id, job, item, case_key, device, intent_ms)"
                " SELECT ?, job, seq, case_key, device, ? FROM job_item"
                " WHERE job = ? AND seq = ?");
    query_bind_text(&q, intent->id);
    query_bind_int(&q, intent->intent_ms);
    query_bind_int(&q, job);
    query_bind_int(&q, intent->item);
    if (query_run(&q, err) != ERR_OK) {
        return err_wrap(err, "run %s", intent->id);
    }
    return queued ? set_running(tx, job, intent->intent_ms, err) : ERR_OK;
}

enum err_code runs_started(struct tx *tx, const char *id, int64_t pid,
                           int64_t process_start, const char *boot_id, int64_t now_ms,
                           struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "UPDATE run SET pid = ?, process_start = ?, boot_id = ?, started_ms = ?"
                " WHERE id = ? AND outcome IS NULL");
    query_bind_int(&q, pid);
    query_bind_int(&q, process_start);
    query_bind_text(&q, boot_id);
    query_bind_int(&q, now_ms);
    query_bind_text(&q, id);
    if (query_run(&q, err) != ERR_OK) {
        return err->code;
    }
    if (sqlite3_changes64(tx->db) > 0) {
        return ERR_OK;
    }
    query_begin(&q, tx, "SELECT 1 FROM run WHERE id = ?");
    query_bind_text(&q, id);
    if (query_step(&q)) {
        err_set(err, ERR_CONFLICT, "run %s is finished already", id);
    } else {
        err_set(err, ERR_NOT_FOUND, "no run %s", id);
    }
    query_end(&q, err);
    return err->code;
}

static enum err_code find_open(struct tx *tx, char (**ret_ids)[ID_SIZE], int *ret_count,
                               struct err *err)
{
    struct query q;

    *ret_ids = NULL;
    *ret_count = 0;
    query_begin(&q, tx, "SELECT id FROM run WHERE outcome IS NULL ORDER BY id");
    while (query_step(&q)) {
        *ret_ids = xrealloc(*ret_ids, (size_t)(*ret_count + 1) * sizeof **ret_ids);
        query_take_text(&q, (*ret_ids)[*ret_count], ID_SIZE);
        ++*ret_count;
    }
    return query_end(&q, err);
}

enum err_code runs_lose_all(struct tx *tx, const char *cause, int64_t now_ms,
                            int *ret_count, struct err *err)
{
    char(*ids)[ID_SIZE];
    enum err_code code = find_open(tx, &ids, ret_count, err);

    for (int i = 0; i < *ret_count && code == ERR_OK; i++) {
        struct run_record run = { .outcome = OUTCOME_LOST, .finished_ms = now_ms };
        struct run_result result = { .run = &run };
        struct run_effect effect;

        copy_text(run.id, sizeof run.id, ids[i]);
        copy_text(run.cause, sizeof run.cause, cause);
        code = runs_finish(tx, &result, &effect, err);
    }
    free(ids);
    return code;
}

enum err_code runs_each_digest(struct tx *tx, const char *id,
                               void (*visit)(void *arg, const struct run_digest *digest),
                               void *arg, struct err *err)
{
    struct query q;

    query_begin(
        &q, tx,
        "SELECT digest, iterations, first_iteration FROM run_digest WHERE run = ?1"
        " UNION ALL SELECT digest, iterations, 0 FROM run WHERE id = ?1"
        " AND digest IS NOT NULL AND distinct_digests = 1 ORDER BY 3");
    query_bind_text(&q, id);
    while (query_step(&q)) {
        struct run_digest digest;

        query_take_text(&q, digest.digest, sizeof digest.digest);
        digest.iterations = query_take_int(&q);
        digest.first_iteration = query_take_int(&q);
        visit(arg, &digest);
    }
    return query_end(&q, err);
}

enum err_code runs_log(struct tx *tx, const char *id, char **ret_log, int64_t *ret_length,
                       int64_t *ret_written, struct err *err)
{
    struct query q;
    bool found;

    *ret_log = NULL;
    *ret_length = 0;
    *ret_written = 0;
    query_begin(&q, tx,
                "SELECT ifnull(length(l.log), 0), ifnull(l.written, 0),"
                " ifnull(l.log, x'') FROM run r LEFT JOIN run_log l ON l.run = r.id"
                " WHERE r.id = ?");
    query_bind_text(&q, id);
    found = query_step(&q);
    if (found) {
        *ret_length = query_take_int(&q);
        *ret_written = query_take_int(&q);
        *ret_log = xmalloc((size_t)*ret_length + 1);
        if (*ret_length) {
            memcpy(*ret_log, query_borrow_blob(&q), (size_t)*ret_length);
        }
        (*ret_log)[*ret_length] = '\0';
    }
    if (query_end(&q, err) != ERR_OK) {
        free(*ret_log);
        return err->code;
    }
    return found ? ERR_OK : err_set(err, ERR_NOT_FOUND, "no run %s", id);
}
