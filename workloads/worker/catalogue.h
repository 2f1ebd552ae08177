/* --catalogue and --probe: what this worker can compute, and what it finds here.  Both
 * print to standard output and return the exit status (status.h). */
#ifndef WORKLOADS_WORKER_CATALOGUE_H
#define WORKLOADS_WORKER_CATALOGUE_H

#include "workloads/worker/backend.h"
#include "workloads/worker/registry.h"

/* One line a workload of BACKEND, sorted by name. */
int catalogue_print(const struct registry *registry, const struct backend *backend);

/* One line; succeeds also where there is no device. */
int catalogue_probe(const struct backend *backend);

/* Prints who uses the devices besides us, one JSON object, for --processes
 * (workloads/PROTOCOL.md).  Returns the exit status. */
int catalogue_processes(const struct backend *backend);

#endif
