/* The load of a run, on its device, as long as the run computes.
 *
 * On a CPU it is other processes of this program, which compute with the device's cores
 * and its memory.  They end with the run, however it ends: they are in its process group,
 * the kernel kills them when it dies (PR_SET_PDEATHSIG), and they end when their standard
 * input does, a pipe that only the run holds.
 *
 * Where the backend has load_within, it is in the process of the run (backend.h): a GPU
 * serves processes in turns, so that another one hardly disturbs, and may serve one only.
 */
#ifndef WORKLOADS_WORKER_LOAD_H
#define WORKLOADS_WORKER_LOAD_H

#include "workloads/worker/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Starts as much as the circumstances say, on the device that RUN has opened, processes
 * with as many threads as it has, and returns when all of it computes.  Ends the run as
 * infra when some cannot. */
void load_start(struct run *run);

/* Ends the run as infra unless all of it still computes: then it had the load it was to
 * have. */
void load_check(struct run *run);

/* Ends all of it. */
void load_stop(void);

/* --load: what such a process does, with THREADS, until its standard input ends.  The
 * device is chosen. Returns the exit status; exits with STATUS_UNCHECKED, after one line
 * with the cause to standard output, when the device fails or has its load within runs.
 */
int load_run(int threads, const struct backend *backend);

#ifdef __cplusplus
}
#endif

#endif
