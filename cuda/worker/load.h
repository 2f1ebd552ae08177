/* Load within the run's own process: kernels in streams of their own, which share the
 * device with those of the run.  Another process would not: a device gives its time to
 * processes in turns (slices of milliseconds), so that its kernels and the run's are
 * seldom there together.
 *
 * Each stream holds some of the multiprocessors, never all, with kernels that end by
 * themselves in about a millisecond.  Few are enqueued ahead: whoever waits for the whole
 * device waits for them, and for no more.  The streams have the lowest priority, which is
 * that of the default stream, too, and do not wait for it. */
#ifndef CUDA_WORKER_LOAD_H
#define CUDA_WORKER_LOAD_H

#include "workloads/worker/backend.h"

/* struct backend: load_within. */
extern const struct backend_load device_load;

#endif
