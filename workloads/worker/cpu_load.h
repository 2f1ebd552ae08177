/* What a load process computes on the CPU. */
#ifndef WORKLOADS_WORKER_CPU_LOAD_H
#define WORKLOADS_WORKER_CPU_LOAD_H

#include "workloads/worker/backend.h"

/* struct backend: load. */
void cpu_load(struct run *run);

#endif
