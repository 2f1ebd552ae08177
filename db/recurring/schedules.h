/* Recurring jobs in the database, and the jobs that they made. */
#ifndef DB_SCHEDULES_H
#define DB_SCHEDULES_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/schedule.h"

struct tx;

/* Stores SCHEDULE, whose id is new, with next_ms.  IDEMPOTENCY_KEY may be NULL.  If it
 * was used before, with an equal POSTED (canonical JSON), ret_existing_id gets the id of
 * what it made, and nothing is stored ("" otherwise).  ERR_CONFLICT: it was used for
 * another, or another has the name; ERR_BUSY: there are SCHEDULES_MAX already. */
enum err_code schedules_insert(struct tx *tx, const struct schedule *schedule,
                               const char *idempotency_key, const char *posted,
                               char ret_existing_id[ID_SIZE], struct err *err);

/* What a person gave of it is replaced: name, when, spread, paused, request.  Its
 * created_ms says since when: it is due next at the first time after that. What was wrong
 * before is forgotten.  ERR_NOT_FOUND, ERR_CONFLICT as above. */
enum err_code schedules_replace(struct tx *tx, const struct schedule *schedule,
                                struct err *err);

/* The jobs that it made stay.  ERR_NOT_FOUND. */
enum err_code schedules_delete(struct tx *tx, const char *id, struct err *err);

/* Pauses it, or lets it go on: due next at NEXT_MS.  ERR_NOT_FOUND. */
enum err_code schedules_pause(struct tx *tx, const char *id, bool paused, int64_t next_ms,
                              struct err *err);

/* ERR_NOT_FOUND.  Caller releases it. */
enum err_code schedules_get(struct tx *tx, const char *id, struct schedule *ret_schedule,
                            struct err *err);

/* All, newest first, ids less than BEFORE ("": from the newest), at most LIMIT.  SCHEDULE
 * is borrowed by VISIT for the call. */
enum err_code schedules_each(struct tx *tx, const char *before, int limit,
                             void (*visit)(void *arg, const struct schedule *schedule),
                             void *arg, struct err *err);

/* A job that a schedule made. */
struct schedule_result {
    int64_t due_ms;
    char job[ID_SIZE];
    enum job_state state;
    int runs_total, runs_done, runs_failed;
    int64_t finished_ms; /* 0: it is open */
};

/* The jobs that schedule ID made, newest first, at most LIMIT. */
enum err_code schedules_each_job(struct tx *tx, const char *id, int limit,
                                 void (*visit)(void *arg,
                                               const struct schedule_result *result),
                                 void *arg, struct err *err);

/* An item of an open job that a schedule made. */
struct schedule_item {
    char schedule[ID_SIZE], job[ID_SIZE], host[CASE_TITLE_SIZE];
    int64_t created_ms; /* of the job */
    int item;
};

/* Those of all jobs that schedules made and that are open, job by job. */
enum err_code schedules_each_open_item(struct tx *tx,
                                       void (*visit)(void *arg,
                                                     const struct schedule_item *item),
                                       void *arg, struct err *err);

/* Schedule ID was due at DUE_MS: stores JOB, and when it is due next.  In one
 * transaction, so a time makes one job at most.  ERR_CONFLICT: it made one already;
 * ERR_NOT_FOUND: it was removed meanwhile, or paused, or is due at another time, or its
 * row is not what was stored. */
enum err_code schedules_fire(struct tx *tx, const char *id, int64_t due_ms,
                             int64_t next_ms, const struct job *job, struct err *err);

/* Schedule ID was due at DUE_MS, and made no job: because its last one is open
 * (SKIPPED), or because of PROBLEM.  NEXT_MS DUE_MS: it is tried again.  Nothing happens
 * if it is not due at DUE_MS, or its row is not what was stored. */
enum err_code schedules_pass(struct tx *tx, const char *id, int64_t due_ms,
                             int64_t next_ms, bool skipped, const char *problem,
                             int64_t now_ms, struct err *err);

/* How long the runs of JOB will take on its busiest device, in ms, from how long the last
 * ones of each case took there; what was never run counts as nothing.  Its device goes to
 * RET_DEVICE, "" if nothing is known. */
enum err_code schedules_estimate(struct tx *tx, const struct job *job, int64_t *ret_ms,
                                 char ret_device[CASE_TITLE_SIZE], struct err *err);

#endif
