/* The use of NVML in this process.  A driver can hang in any call, for ever, so every
 * reading happens in a thread of its own, with a deadline.  What is not there by then is
 * not waited for again: NVML is given up for the rest of the process, and the process,
 * when it exits, leaves without running destructors, which might wait for what hangs. */
#ifndef CUDA_NVML_SESSION_H
#define CUDA_NVML_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "cuda/nvml/api.h"

/* Reads into RECORD, in the thread of the session. */
typedef void nvml_read_fn(const struct nvml_api *api, void *record);

/* Loads and initializes NVML at first need, then calls READ with a copy of the SIZE bytes
 * of RECORD, and copies them back.  False, with one line in ret_cause and RECORD as it
 * was, when NVML cannot be used or READ has not returned after DEADLINE_MS.  From one
 * thread only. */
bool nvml_session_read(nvml_read_fn *read, void *record, size_t size, int deadline_ms,
                       char ret_cause[NVML_CAUSE_SIZE]);

#endif
