/* From a request (daemon/jobs/request.h) to a job with items.  Pure: the catalogue and
 * the devices come in, a struct job or a list of problems goes out.  The REST interface
 * and the daemon's first survey both come through here. */
#ifndef DAEMON_JOBS_EXPAND_H
#define DAEMON_JOBS_EXPAND_H

#include <jansson.h>

#include "daemon/base/err.h"
#include "daemon/evidence/catalogue.h"
#include "daemon/jobs/device.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/problem.h"

/* Fills RET_JOB except its id and created_ms: state queued, the canonical request, and
 * the items, all variants of one workload, size, dtype, seed, device and stack adjacent.
 * Caller releases it with job_release.  ERR_INVALID with RET_PROBLEMS saying what is
 * wrong; ERR_BUSY with a PROBLEM_NO_DEVICE when nothing is wrong but no device is online.
 * RET_PROBLEMS must be empty; caller releases it. */
enum err_code job_request_expand(const json_t *request, const struct catalogue *catalogue,
                                 const struct device_stack *devices, int device_count,
                                 struct job *ret_job, struct problems *ret_problems);

#endif
