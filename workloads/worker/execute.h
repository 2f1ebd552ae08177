/* --run: computes the case and writes its events to the descriptor of the run protocol.
 */
#ifndef WORKLOADS_WORKER_EXECUTE_H
#define WORKLOADS_WORKER_EXECUTE_H

#include <stdio.h>

#include "workloads/worker/args.h"
#include "workloads/worker/backend.h"

/* The descriptor of the run protocol: the number in REPROD_RESULT_FD, or 3, closed on
 * exec from here on (except 0 to 2). -1, after one line to LOG, when it is not a number
 * or not open for writing.  Must be called before anything opens a file, which could be
 * given the same number. */
int result_fd(FILE *log);

/* Events go to descriptor FD (of result_fd); the device is chosen (backend->select).
 * Returns the exit status (status.h); exits with it when the run ends early or its events
 * cannot be written. */
int execute_run(const struct args *args, const struct backend *backend, int fd);

#endif
