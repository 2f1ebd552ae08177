/* The jobs of a survey: one, or, where a fleet is too large for one, one for each device,
 * or for each device with each stack.  Pure. */
#ifndef DAEMON_JOBS_SURVEY_JOBS_H
#define DAEMON_JOBS_SURVEY_JOBS_H

#include "daemon/evidence/catalogue.h"
#include "daemon/jobs/device.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/problem.h"

struct survey_jobs {
    struct job *jobs; /* without id and created_ms */
    int count;        /* >= 1 */
};

/* Errors as of job_request_expand; then RET_JOBS holds nothing. */
enum err_code survey_jobs_make(const struct catalogue *catalogue,
                               const struct device_stack *devices, int device_count,
                               struct survey_jobs *ret_jobs,
                               struct problems *ret_problems);

/* Likewise of DEVICE alone: one, or one for each of its stacks. */
enum err_code survey_jobs_of_device(const struct catalogue *catalogue,
                                    const struct device_stack *devices, int device_count,
                                    const char *device, struct survey_jobs *ret_jobs,
                                    struct problems *ret_problems);

void survey_jobs_release(struct survey_jobs *jobs);

#endif
