/* The digest of workloads/instruments/digest.h, computed where the tensor is: 16 bytes
 * come back.  The same bits as on the CPU. */
#ifndef CUDA_WORKER_DIGEST_H
#define CUDA_WORKER_DIGEST_H

#include "workloads/worker/backend.h"

/* struct backend: digest. */
struct digest digest_device(struct run *run, const struct tensor *tensor);

/* Takes its scratch memory, so that it cannot fail for want of it later. */
void digest_device_prepare(void);

#endif
