/* What a job's runs are to record: the member "probes" of a request.  Pure. */
#ifndef DAEMON_JOBS_JOB_PROBES_H
#define DAEMON_JOBS_JOB_PROBES_H

#include <jansson.h>

#include "daemon/jobs/problem.h"

enum { JOB_PROBE_NAMES_MAX = 128 };

/* Reads it from REQUEST: true (every step), a number (every so many steps), an object
 *   {"every":10, "names":"conv*", "steps":[100,199]}
 * of which each member may be left out, or false.  Adds the worker's arguments to the
 * object OPTIONS, and what is wrong to PROBLEMS. */
void job_probes_read(const json_t *request, json_t *options, struct problems *problems);

#endif
