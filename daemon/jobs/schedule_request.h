/* The body of a request for a schedule: JSON that is read strictly.  Pure. */
#ifndef DAEMON_JOBS_SCHEDULE_REQUEST_H
#define DAEMON_JOBS_SCHEDULE_REQUEST_H

#include <jansson.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/problem.h"
#include "daemon/jobs/schedule.h"

/* Reads BODY into the zeroed ret_schedule, which was made at NOW_MS: its name, when it is
 * due, its spread, whether it is paused.  RET_JOB is what its jobs are, as it was given,
 * borrowed from BODY.  ERR_INVALID: what is wrong was added to PROBLEMS. */
enum err_code schedule_request_read(const json_t *body, int64_t now_ms,
                                    struct schedule *ret_schedule, const json_t **ret_job,
                                    struct problems *problems);

/* What the jobs of a schedule called NAME are (new reference): JOB, with what it does not
 * say. */
json_t *schedule_request_job(const json_t *job, const char *name);

#endif
