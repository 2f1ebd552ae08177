/* The jobs of a survey: one, or, where a fleet is too large for one, one for each device,
 * or for each device with each stack.  Pure. */
#ifndef DAEMON_SURVEY_JOBS_H
#define DAEMON_SURVEY_JOBS_H

#include "api/api.h"
#include "api/problem.h"
#include "db/jobs.h"
#include "workloads/evidence/catalogue.h"

struct survey_jobs {
    struct job *jobs; /* without id and created_ms */
    int count;        /* >= 1 */
};

/* Errors as of job_request_expand; then RET_JOBS holds nothing. */
enum err_code survey_jobs_make(const struct catalogue *catalogue,
                               const struct api_device *devices, int device_count,
                               struct survey_jobs *ret_jobs,
                               struct problems *ret_problems);

void survey_jobs_release(struct survey_jobs *jobs);

#endif
