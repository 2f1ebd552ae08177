/* What a load process computes on the GPU. */
#ifndef CUDA_WORKER_LOAD_H
#define CUDA_WORKER_LOAD_H

#include "workloads/worker/backend.h"

/* struct backend: load. */
void load_device(struct run *run);

#endif
