/* Inputs on the CPU (the definition of each element: fill_block.h). */
#ifndef WORKLOADS_WORKER_CPU_FILL_H
#define WORKLOADS_WORKER_CPU_FILL_H

#include "workloads/worker/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* struct backend: fill. */
void cpu_fill(struct run *run, struct tensor *tensor, const struct filling *filling);

#ifdef __cplusplus
}
#endif

#endif
