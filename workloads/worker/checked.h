/* --run --checked: the outputs of a run's last iteration, the bits whose digest it
 * reported, are compared with the float64 reference. */
#ifndef WORKLOADS_WORKER_CHECKED_H
#define WORKLOADS_WORKER_CHECKED_H

#include <stdbool.h>

#include "workloads/worker/emit.h"
#include "workloads/workload.h"

/* Writes the events `checking` and `check` (workloads/PROTOCOL.md) with EMIT.  RUN has
 * computed its last iteration.  False when the reference took more than SECONDS: it still
 * computes, in a thread, and the process must end by _exit. */
bool checked_report(struct run *run, int seconds, struct emit *emit);

#endif
