/* --resume: goes on with the run of another process, from what that process left in the
 * file that is standard input (run_resume in workload.h starts it). */
#ifndef WORKLOADS_WORKER_RESUME_H
#define WORKLOADS_WORKER_RESUME_H

#include "workloads/worker/args.h"
#include "workloads/worker/backend.h"

/* Goes on with iteration ARGS->iterations - 1.  Where probes are asked for, their events
 * go to descriptor RESUME_RECORDS_FD.
 *
 * The device is chosen (backend->select).  Returns the exit status (status.h): 0 when the
 * workload's resume hook is done; exits with STATUS_UNCHECKED, after one line with the
 * cause to standard output, when the run ends early. */
enum { RESUME_RECORDS_FD = 3 };
int resume_run(const struct args *args, const struct backend *backend);

#endif
