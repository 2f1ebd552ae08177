#include "db/recurring/schedules.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "db/integrity/checksums.h"
#include "db/jobs.h"
#include "db/tx.h"

#define SCHEDULE_COLUMNS                                                                 \
    "s.id, s.name, s.every_seconds, s.calendar, s.spread_seconds, s.paused,"             \
    " s.created_ms, s.next_ms, s.skipped, s.problem, s.problem_ms, s.request,"           \
    " (SELECT count(*) FROM schedule_job j WHERE j.schedule = s.number),"                \
    " ifnull((SELECT max(j.due_ms) FROM schedule_job j WHERE j.schedule = s.number), "   \
    "0),"                                                                                \
    " (SELECT b.id FROM schedule_job j JOIN job b ON b.number = j.job"                   \
    " WHERE j.schedule = s.number ORDER BY j.due_ms DESC LIMIT 1),"                      \
    " s.sum IS NOT " SCHEDULE_SUM("s.")

/* What was stored was parsed before. */
static void take_schedule(struct query *q, struct schedule *ret_schedule)
{
    struct err ignored;
    int column;

    *ret_schedule = (struct schedule){ 0 };
    query_take(q, ret_schedule->id, ret_schedule->name, &ret_schedule->every_seconds,
               ret_schedule->calendar_text, &ret_schedule->spread_seconds,
               &ret_schedule->paused, &ret_schedule->created_ms, &ret_schedule->next_ms,
               &ret_schedule->skipped, ret_schedule->problem, &ret_schedule->problem_ms);
    ret_schedule->request = query_copy_text(q);
    query_take(q, &ret_schedule->jobs, &ret_schedule->last_ms, ret_schedule->last_job,
               &ret_schedule->damaged);
    if (ret_schedule->damaged) {
        copy_text(ret_schedule->problem, sizeof ret_schedule->problem,
                  "its row in the database is not what was stored, so it makes no job: "
                  "remove it, restore a backup (reprod restore), or acknowledge it "
                  "(reprod fsck --accept-loss)");
    }
    if (ret_schedule->calendar_text[0]) {
        calendar_parse(ret_schedule->calendar_text, &ret_schedule->calendar, &column,
                       &ignored);
    }
}

/* Whether another schedule than ID has NAME. */
static enum err_code refuse_name(struct tx *tx, const char *name, const char *id,
                                 struct err *err)
{
    char taken[ID_SIZE] = "";

    if (tx_fetch(tx, TX_TARGETS(taken), err,
                 "SELECT id FROM schedule WHERE name = ? AND id <> ?", name,
                 id) != ERR_OK) {
        return err->code;
    }
    return taken[0] ? err_set(err, ERR_CONFLICT, "schedule %s has the name '%s' already",
                              taken, name)
                    : ERR_OK;
}

/* What KEY made before, if anything. */
static enum err_code find_earlier(struct tx *tx, const char *key, const char *posted,
                                  char ret_id[ID_SIZE], struct err *err)
{
    char id[ID_SIZE] = "";
    bool equal = false;

    if (tx_fetch(tx, TX_TARGETS(id, &equal), err,
                 "SELECT id, posted = ? FROM schedule WHERE idempotency_key = ?", posted,
                 key) != ERR_OK) {
        return err->code;
    }
    if (id[0] && !equal) {
        return err_set(err, ERR_CONFLICT,
                       "this idempotency key was used for another schedule: %s", id);
    }
    copy_text(ret_id, ID_SIZE, id);
    return ERR_OK;
}

enum err_code schedules_insert(struct tx *tx, const struct schedule *s, const char *key,
                               const char *posted, char ret_existing_id[ID_SIZE],
                               struct err *err)
{
    int64_t count = 0;

    ret_existing_id[0] = '\0';
    if (key && (find_earlier(tx, key, posted, ret_existing_id, err) != ERR_OK ||
                ret_existing_id[0])) {
        return ret_existing_id[0] ? ERR_OK : err->code;
    }
    if (refuse_name(tx, s->name, s->id, err) != ERR_OK ||
        tx_fetch_int(tx, &count, err, "SELECT count(*) FROM schedule") != ERR_OK) {
        return err->code;
    }
    if (count >= SCHEDULES_MAX) {
        return err_set(err, ERR_BUSY, "there are %d schedules already", SCHEDULES_MAX);
    }
    return tx_run(tx, err,
                  "INSERT INTO schedule (id, name, every_seconds, calendar,"
                  " spread_seconds, paused, created_ms, next_ms, request,"
                  " idempotency_key, posted) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                  s->id, s->name, s->every_seconds, s->calendar_text, s->spread_seconds,
                  s->paused, s->created_ms, s->next_ms, s->request, key, posted);
}

/* Whether the statement before met a row of schedule ID. */
static enum err_code met(struct tx *tx, const char *id, struct err *err)
{
    return sqlite3_changes(tx->db) > 0
               ? ERR_OK
               : err_set(err, ERR_NOT_FOUND, "there is no schedule %s", id);
}

enum err_code schedules_replace(struct tx *tx, const struct schedule *s, struct err *err)
{
    struct schedule kept = *s;

    /* As each later time, the next one is counted from when it was made. */
    if (tx_fetch_int(tx, &kept.created_ms, err,
                     "SELECT created_ms FROM schedule WHERE id = ?", s->id) != ERR_OK ||
        refuse_name(tx, s->name, s->id, err) != ERR_OK ||
        tx_run(tx, err,
               "UPDATE schedule SET name = ?, every_seconds = ?, calendar = ?,"
               " spread_seconds = ?, paused = ?, next_ms = ?, problem = '',"
               " problem_ms = 0, request = ? WHERE id = ?",
               s->name, s->every_seconds, s->calendar_text, s->spread_seconds, s->paused,
               schedule_next(&kept, s->created_ms), s->request, s->id) != ERR_OK) {
        return err->code;
    }
    return met(tx, s->id, err);
}

enum err_code schedules_delete(struct tx *tx, const char *id, struct err *err)
{
    return tx_run(tx, err, "DELETE FROM schedule WHERE id = ?", id) == ERR_OK
               ? met(tx, id, err)
               : err->code;
}

enum err_code schedules_pause(struct tx *tx, const char *id, bool paused, int64_t next_ms,
                              struct err *err)
{
    return tx_run(tx, err, "UPDATE schedule SET paused = ?, next_ms = ? WHERE id = ?",
                  paused, next_ms, id) == ERR_OK
               ? met(tx, id, err)
               : err->code;
}

enum err_code schedules_get(struct tx *tx, const char *id, struct schedule *ret_schedule,
                            struct err *err)
{
    struct query q;

    *ret_schedule = (struct schedule){ 0 };
    query_begin(&q, tx, "SELECT " SCHEDULE_COLUMNS " FROM schedule s WHERE s.id = ?", id);
    if (query_step(&q)) {
        take_schedule(&q, ret_schedule);
    }
    if (query_end(&q, err) != ERR_OK) {
        schedule_release(ret_schedule);
        return err->code;
    }
    return ret_schedule->id[0]
               ? ERR_OK
               : err_set(err, ERR_NOT_FOUND, "there is no schedule %s", id);
}

enum err_code schedules_each(struct tx *tx, const char *before, int limit,
                             void (*visit)(void *arg, const struct schedule *schedule),
                             void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT " SCHEDULE_COLUMNS
                " FROM schedule s WHERE s.id < ? ORDER BY s.id DESC LIMIT ?",
                *before ? before : "~", limit);
    while (query_step(&q)) {
        struct schedule schedule;

        take_schedule(&q, &schedule);
        visit(arg, &schedule);
        schedule_release(&schedule);
    }
    return query_end(&q, err);
}

enum err_code schedules_each_job(struct tx *tx, const char *id, int limit,
                                 void (*visit)(void *arg,
                                               const struct schedule_result *result),
                                 void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT j.due_ms, b.id, b.state, b.runs_total, b.runs_done,"
                " b.runs_failed, b.finished_ms FROM schedule s"
                " JOIN schedule_job j ON j.schedule = s.number"
                " JOIN job b ON b.number = j.job WHERE s.id = ?"
                " ORDER BY j.due_ms DESC LIMIT ?",
                id, limit);
    while (query_step(&q)) {
        struct schedule_result result = { .due_ms = query_take_int(&q) };

        query_take(&q, result.job);
        result.state = job_state_parse(query_borrow_text(&q));
        query_take(&q, &result.runs_total, &result.runs_done, &result.runs_failed,
                   &result.finished_ms);
        visit(arg, &result);
    }
    return query_end(&q, err);
}

enum err_code schedules_each_open_item(struct tx *tx,
                                       void (*visit)(void *arg,
                                                     const struct schedule_item *item),
                                       void *arg, struct err *err)
{
    struct query q;

    query_begin(&q, tx,
                "SELECT s.id, b.id, b.created_ms, i.seq, ifnull(d.host, '') FROM job b"
                " JOIN schedule_job j ON j.job = b.number"
                " JOIN schedule s ON s.number = j.schedule"
                " JOIN job_item i ON i.job = b.number LEFT JOIN device d ON d.id ="
                " i.device WHERE b.state IN ('queued', 'running') ORDER BY b.id, i.seq");
    while (query_step(&q)) {
        struct schedule_item item;

        query_take(&q, item.schedule, item.job, &item.created_ms, &item.item, item.host);
        visit(arg, &item);
    }
    return query_end(&q, err);
}

enum err_code schedules_fire(struct tx *tx, const char *id, int64_t due_ms,
                             int64_t next_ms, const struct job *job, struct err *err)
{
    char existing[ID_SIZE];

    if (tx_run(
            tx, err,
            "UPDATE schedule SET next_ms = ?, problem = '', problem_ms = 0"
            " WHERE id = ? AND next_ms = ? AND NOT paused AND sum IS " SCHEDULE_SUM(""),
            next_ms, id, due_ms) != ERR_OK ||
        met(tx, id, err) != ERR_OK ||
        jobs_insert(tx, job, NULL, existing, err) != ERR_OK) {
        return err->code;
    }
    return tx_run(tx, err,
                  "INSERT INTO schedule_job (schedule, due_ms, job)"
                  " SELECT s.number, ?, b.number FROM schedule s, job b"
                  " WHERE s.id = ? AND b.id = ?",
                  due_ms, id, job->id);
}

enum err_code schedules_pass(struct tx *tx, const char *id, int64_t due_ms,
                             int64_t next_ms, bool skipped, const char *problem,
                             int64_t now_ms, struct err *err)
{
    return tx_run(tx, err,
                  "UPDATE schedule SET next_ms = ?, skipped = skipped + ?, problem = ?,"
                  " problem_ms = ? WHERE id = ? AND next_ms = ? AND NOT paused"
                  " AND sum IS " SCHEDULE_SUM(""),
                  next_ms, skipped, problem, now_ms, id, due_ms);
}

/* How long the last runs of an item's case took on its device; 0: none is known. */
static enum err_code run_ms(struct tx *tx, const struct job_item *item, int64_t *ret_ms,
                            struct err *err)
{
    const struct case_key *k = &item->key;

    *ret_ms = 0;
    return tx_fetch_int(tx, ret_ms, err,
                        "SELECT ifnull(avg(wall_ns), 0) / 1000000 FROM (SELECT wall_ns"
                        " FROM (SELECT device, wall_ns FROM run WHERE case_key ="
                        " (SELECT number FROM case_key WHERE workload = ?"
                        " AND variant = ? AND size = ? AND dtype = ? AND seed = ?"
                        " AND version = ?) ORDER BY id DESC LIMIT 500)"
                        " WHERE device = ? AND wall_ns > 0 LIMIT 5)",
                        k->workload, k->variant, k->size, k->dtype, (int64_t)k->seed,
                        k->version, item->device);
}

enum err_code schedules_estimate(struct tx *tx, const struct job *job, int64_t *ret_ms,
                                 char ret_device[CASE_TITLE_SIZE], struct err *err)
{
    struct load {
        const char *device;
        int64_t ms;
    } *loads = NULL;
    int count = 0;
    enum err_code code = ERR_OK;

    *ret_ms = 0;
    ret_device[0] = '\0';
    for (int i = 0; i < job->item_count && code == ERR_OK; i++) {
        const struct job_item *item = &job->items[i];
        int64_t ms;
        int at = 0;

        code = run_ms(tx, item, &ms, err);
        while (at < count && strcmp(loads[at].device, item->device) != 0) {
            at++;
        }
        if (at == count) {
            loads = xgrow(loads, count, sizeof *loads);
            loads[count++] = (struct load){ .device = item->device };
        }
        loads[at].ms += ms * item->runs_wanted;
        if (loads[at].ms > *ret_ms) {
            *ret_ms = loads[at].ms;
            copy_text(ret_device, CASE_TITLE_SIZE, item->device);
        }
    }
    free(loads);
    return code;
}
