/* Inputs on the CPU: the definition of what FILLING puts into a tensor, element by
 * element (workloads/workload.h: enum fill), which every other backend matches bit for
 * bit. */
#ifndef WORKLOADS_WORKER_CPU_FILL_H
#define WORKLOADS_WORKER_CPU_FILL_H

#include "workloads/worker/backend.h"

/* struct backend: fill. */
void cpu_fill(struct run *run, struct tensor *tensor, const struct filling *filling);

#endif
