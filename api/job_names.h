/* The names by which a job request chooses: whether there is such a thing, and what is
 * most like it where there is not.  Pure. */
#ifndef API_JOB_NAMES_H
#define API_JOB_NAMES_H

#include "api/api.h"
#include "api/job_wishes.h"
#include "api/problem.h"
#include "workloads/evidence/catalogue.h"

/* Adds to PROBLEMS each workload, device and stack that is not there, and, where nothing
 * is wrong by then, each variant, size and dtype that no chosen workload has. */
void job_names_check(const struct job_wishes *wishes, const struct catalogue *catalogue,
                     const struct api_device *devices, int device_count,
                     struct problems *problems);

#endif
