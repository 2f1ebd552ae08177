/* What a job request with "localise":true comes to: one case on one device with one
 * stack, as the two items of db/localisations.h.  Pure. */
#ifndef DAEMON_JOBS_JOB_LOCALISE_H
#define DAEMON_JOBS_JOB_LOCALISE_H

#include "daemon/jobs/job.h"
#include "daemon/jobs/job_wishes.h"
#include "daemon/jobs/problem.h"

/* JOB has more than one item: says which members of the request are to be narrowed. */
void job_localise_check(const struct job *job, struct problems *problems);

/* JOB has one item: makes it the one that leaves traces, and adds the one that captures.
 */
void job_localise_items(struct job *job, const struct job_wishes *wishes);

#endif
