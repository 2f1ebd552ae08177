/* The circumstances that a job's runs are to compute under (workloads/PROTOCOL.md): the
 * members "contention", "memory_poison" and "allocation_jitter" of a request.  Pure. */
#ifndef DAEMON_JOBS_JOB_CIRCUMSTANCES_H
#define DAEMON_JOBS_JOB_CIRCUMSTANCES_H

#include <jansson.h>

#include "daemon/jobs/problem.h"

enum { JOB_CONTENTION_MAX = 64 };

/* Reads them from REQUEST: adds the worker's arguments to the object OPTIONS, and what is
 * wrong to PROBLEMS. */
void job_circumstances_read(const json_t *request, json_t *options,
                            struct problems *problems);

#endif
