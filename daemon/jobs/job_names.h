/* The names by which a job request chooses: whether there is such a thing, and what is
 * most like it where there is not.  Pure. */
#ifndef DAEMON_JOBS_JOB_NAMES_H
#define DAEMON_JOBS_JOB_NAMES_H

#include "daemon/evidence/catalogue.h"
#include "daemon/jobs/device.h"
#include "daemon/jobs/job_wishes.h"
#include "daemon/jobs/problem.h"

/* Adds to PROBLEMS each workload, device and stack that is not there, and, where nothing
 * is wrong by then, each variant, size and dtype that no chosen workload has. */
void job_names_check(const struct job_wishes *wishes, const struct catalogue *catalogue,
                     const struct device_stack *devices, int device_count,
                     struct problems *problems);

#endif
