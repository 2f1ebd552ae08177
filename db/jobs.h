/* Jobs in the database: stored once with their items, listed, cancelled. */
#ifndef DB_JOBS_H
#define DB_JOBS_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/job.h"

struct tx;

/* Stores JOB with its items and an outbox event.  IDEMPOTENCY_KEY may be NULL.  If the
 * key was used before with an equal request, ret_existing_id gets that job's id and
 * nothing is stored ("" otherwise); with a different request: ERR_CONFLICT.  ERR_INVALID
 * if the job has no items. */
enum err_code jobs_insert(struct tx *tx, const struct job *job,
                          const char *idempotency_key, char ret_existing_id[ID_SIZE],
                          struct err *err);

/* With items.  ERR_NOT_FOUND.  Release with job_release. */
enum err_code jobs_get(struct tx *tx, const char *id, struct job *ret_job,
                       struct err *err);

/* Newest first, without items, at most LIMIT, ids less than BEFORE (NULL or "": from the
 * newest); where REQUESTED, only what has another priority than `background`, and
 * surveys.  JOB is borrowed by VISIT for the call. */
enum err_code jobs_list(struct tx *tx, const char *before, bool requested, int limit,
                        void (*visit)(void *arg, const struct job *job), void *arg,
                        struct err *err);

/* Every job that is queued or running, oldest first, with items: what a restart resumes.
 */
enum err_code jobs_each_open(struct tx *tx,
                             void (*visit)(void *arg, const struct job *job), void *arg,
                             struct err *err);

/* To JOB_CANCELLED, with an event; what its runs captured is dropped.  ERR_NOT_FOUND;
 * ERR_CONFLICT if already finished; a job that is cancelled already is fine. */
enum err_code jobs_cancel(struct tx *tx, const char *id, int64_t now_ms, struct err *err);

#endif
