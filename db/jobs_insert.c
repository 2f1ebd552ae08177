#include "db/case_keys.h"
#include "db/cells_fold.h"
#include "db/jobs.h"
#include "db/jobs_progress.h"
#include "db/localisations.h"
#include "db/tx.h"

/* What the key was used for before, if it was. */
static enum err_code find_earlier(struct tx *tx, const struct job *job, const char *key,
                                  char ret_existing_id[ID_SIZE], struct err *err)
{
    struct query q;
    bool equal = true;

    query_begin(&q, tx, "SELECT id, request = ? FROM job WHERE idempotency_key = ?");
    query_bind_text(&q, job->request);
    query_bind_text(&q, key);
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
    struct query q;
    int64_t total = 0;

    for (int i = 0; i < job->item_count; i++) {
        total += job->items[i].runs_wanted;
    }
    query_begin(&q, tx,
                "INSERT INTO job (id, state, priority, survey, stop_when_varies,"
                " iterations, timeout_ms, created_ms, runs_total, items_open, request,"
                " idempotency_key) VALUES (?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    query_bind_text(&q, job->id);
    query_bind_text(&q, job_priority_name(job->priority));
    query_bind_int(&q, job->survey);
    query_bind_int(&q, job->stop_when_varies);
    query_bind_int(&q, job->iterations);
    query_bind_int(&q, job->timeout_ms);
    query_bind_int(&q, job->created_ms);
    query_bind_int(&q, total);
    query_bind_int(&q, job->item_count);
    query_bind_text(&q, job->request);
    query_bind_text(&q, key);
    if (query_run(&q, err) != ERR_OK) {
        return err->code;
    }
    *ret_number = sqlite3_last_insert_rowid(tx->db);
    return ERR_OK;
}

static enum err_code insert_item(struct tx *tx, int64_t job, int seq, int64_t now_ms,
                                 const struct job_item *item, struct err *err)
{
    struct query q;
    int64_t key;
    bool declared;

    if (case_keys_declare(tx, &item->key, item->is_control, item->no_control, &key,
                          &declared, err) != ERR_OK ||
        (declared && cells_judge_case(tx, key, now_ms, err) != ERR_OK)) {
        return err->code;
    }
    query_begin(&q, tx,
                "INSERT INTO job_item (job, seq, case_key, device, stack, options,"
                " timeout_ms, runs_wanted) VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
    query_bind_int(&q, job);
    query_bind_int(&q, seq);
    query_bind_int(&q, key);
    query_bind_text(&q, item->device);
    query_bind_text(&q, item->stack);
    query_bind_text(&q, item->options);
    query_bind_int(&q, item->timeout_ms);
    query_bind_int(&q, item->runs_wanted);
    return query_run(&q, err);
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
