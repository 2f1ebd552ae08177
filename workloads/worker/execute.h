/* --run: computes the case and writes its events to the descriptor of the run protocol.
 */
#ifndef WORKLOADS_WORKER_EXECUTE_H
#define WORKLOADS_WORKER_EXECUTE_H

#include "workloads/worker/args.h"
#include "workloads/worker/backend.h"

/* Events go to descriptor FD (result_fd.h); the device is chosen (backend->select).
 * Returns the exit status (status.h); exits with it when the run ends early or its events
 * cannot be written. */
int execute_run(const struct args *args, const struct backend *backend, int fd);

#endif
