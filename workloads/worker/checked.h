/* --run --checked: the outputs of one iteration are compared with the float64 reference.
 * It is the first iteration, or with --passed the first whose digest is another one. */
#ifndef WORKLOADS_WORKER_CHECKED_H
#define WORKLOADS_WORKER_CHECKED_H

#include <stdbool.h>

#include "workloads/instruments/digest.h"
#include "workloads/worker/args.h"
#include "workloads/worker/emit.h"
#include "workloads/workload.h"

/* RUN has computed an iteration, whose outputs have DIGEST.  Copies them if they are what
 * ARGS wants compared. */
void checked_iteration(struct run *run, const struct args *args, struct digest digest);

/* After the last iteration: writes the events `checking` and `check`
 * (workloads/PROTOCOL.md) with EMIT.  False when the reference took more than the seconds
 * of ARGS: it still computes, in a thread, and the process must end by _exit. */
bool checked_report(struct run *run, const struct args *args, struct emit *emit);

#endif
