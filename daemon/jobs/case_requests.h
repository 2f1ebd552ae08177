/* Requests of cases that were measured before: one for each set of siblings, with all
 * their variants that are asked for.  Pure. */
#ifndef DAEMON_JOBS_CASE_REQUESTS_H
#define DAEMON_JOBS_CASE_REQUESTS_H

#include <jansson.h>

#include "daemon/jobs/case.h"

enum { CASE_REQUESTS_MAX = 200 };

/* Adds KEY on DEVICE with STACK to REQUESTS, an array of job requests, as part of a
 * survey; nothing more once there are CASE_REQUESTS_MAX.  STACK may name the workload of
 * an external one, too. */
void case_requests_add(json_t *requests, const struct case_key *key, const char *device,
                       const char *stack, const char *note);

#endif
