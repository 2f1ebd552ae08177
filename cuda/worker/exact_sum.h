/* The exact sum of workloads/instruments/exact_sum.h, binned where the tensor is and
 * finished on the host.  The same bits as on the CPU. */
#ifndef CUDA_WORKER_EXACT_SUM_H
#define CUDA_WORKER_EXACT_SUM_H

#include "workloads/worker/backend.h"

/* struct backend: exact_sum. */
double exact_sum_device(struct run *run, const struct tensor *tensor);

/* Takes its scratch memory, so that it cannot fail for want of it later. */
void exact_sum_device_prepare(void);

#endif
