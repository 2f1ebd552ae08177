/* What tensors hold before a computation; see struct backend for each. */
#ifndef CUDA_WORKER_FILL_H
#define CUDA_WORKER_FILL_H

#include "workloads/worker/backend.h"

void fill_tensor(struct run *run, struct tensor *tensor, const struct filling *filling);
void fill_poison(struct run *run, void *memory, size_t bytes, uint32_t pattern);

#endif
