/* The load of a run: other processes of this program that compute on the run's device,
 * with its cores and its memory, as long as the run does.
 *
 * They end with the run, however it ends: they are in its process group, the kernel kills
 * them when it dies (PR_SET_PDEATHSIG), and they end when their standard input does, a
 * pipe that only the run holds. */
#ifndef WORKLOADS_WORKER_LOAD_H
#define WORKLOADS_WORKER_LOAD_H

#include "workloads/worker/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Starts as many as the circumstances say, on the device that RUN has opened, with as
 * many threads as it has, and returns when all of them compute.  Ends the run as infra
 * when one cannot. */
void load_start(struct run *run);

/* Ends the run as infra unless all are still there: then it had the load it was to have.
 */
void load_check(struct run *run);

/* Ends and reaps them. */
void load_stop(void);

/* --load: what such a process does, with THREADS, until its standard input ends.  The
 * device is chosen. Returns the exit status; exits with STATUS_UNCHECKED, after one line
 * with the cause to standard output, when the device fails. */
int load_run(int threads, const struct backend *backend);

#ifdef __cplusplus
}
#endif

#endif
