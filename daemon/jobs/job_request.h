/* From what a person asks for to a job with items.  Pure: the catalogue and the devices
 * come in, a struct job or a list of problems goes out.  The REST interface and the
 * daemon's first survey both come through here.
 *
 *   {"workloads":[…], "variants":[…], "sizes":[…], "dtypes":[…], "seeds":[…] or "seed",
 *    "devices":[…], "stacks":[…], "runs":5, "iterations":10, "timeout_seconds":60,
 *    "stop_when_varies":false, "priority":"interactive", "survey":false, "note":"",
 *    "contention":4, "memory_poison":true, "allocation_jitter":true, "probes":true,
 *    "localise":false, "runs_max":200}
 *
 * Every member may be left out; those of daemon/jobs/job_circumstances.h and
 * daemon/jobs/job_probes.h then mean none. Workloads, variants and devices left out mean
 * all (all that are online, for devices; of external workloads those whose configuration
 * says "survey"); sizes and dtypes mean each workload's default; the seed is 1; stacks
 * left out mean, for each workload, the first of a device that has it, "all" (instead of
 * a list) every one; the timeout is that of its slowest workload, at least 60 s.
 * "survey":true changes the defaults: stop_when_varies true, priority background, stacks
 * "all".  A variant, size or dtype that only some of the workloads have applies to those,
 * and a workload that a stack's worker lacks is left out there.
 *
 * "localise":true asks for the place where runs of one case part (db/localisations.h):
 * the request must come to exactly one item, which is run with probes at least `runs`
 * times and at most `runs_max` times; iterations default to 1. */
#ifndef DAEMON_JOBS_JOB_REQUEST_H
#define DAEMON_JOBS_JOB_REQUEST_H

#include <jansson.h>

#include "daemon/base/err.h"
#include "daemon/evidence/catalogue.h"
#include "daemon/jobs/device.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/problem.h"

enum {
    JOB_RUNS_DEFAULT = 5,
    JOB_ITERATIONS_DEFAULT = 10,
    JOB_TIMEOUT_SECONDS_DEFAULT = 60,
    JOB_RUNS_MAX = 100000,           /* of one item */
    JOB_LOCALISE_RUNS_DEFAULT = 200, /* runs_max */
    JOB_LOCALISE_RUNS_MAX = 10000,
    JOB_ITERATIONS_MAX = 1000,
    JOB_TIMEOUT_SECONDS_MAX = 86400,
    JOB_ITEMS_MAX = 10000,
    JOB_RUNS_TOTAL_MAX = 10000000,
    JOB_NOTE_MAX = 1000
};

/* Fills RET_JOB except its id and created_ms: state queued, the canonical request, and
 * the items, all variants of one workload, size, dtype, seed, device and stack adjacent.
 * Caller releases it with job_release.  ERR_INVALID with RET_PROBLEMS saying what is
 * wrong; ERR_BUSY with a PROBLEM_NO_DEVICE when nothing is wrong but no device is online.
 * RET_PROBLEMS must be empty; caller releases it. */
enum err_code job_request_expand(const json_t *request, const struct catalogue *catalogue,
                                 const struct device_stack *devices, int device_count,
                                 struct job *ret_job, struct problems *ret_problems);

#endif
