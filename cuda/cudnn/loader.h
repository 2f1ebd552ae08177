/* Finds cuDNN 8 or 9 in this process (library.h says where).  Its version is the fact
 * "cudnn" of every run's environment. */
#ifndef CUDA_CUDNN_LOADER_H
#define CUDA_CUDNN_LOADER_H

#include "cuda/cudnn/api.h"
#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cudnn {
    const char *reason;  /* why it cannot be used, one line; NULL when it can */
    const char *version; /* "9.19.0"; NULL when nothing was loaded */
    int major;
    struct cudnn_table api; /* valid when `reason` is NULL */
};

/* Loads the library on the first call.  Borrowed: valid until the process ends. */
const struct cudnn *cudnn_load(void);

/* For `unsupported` of a variant: why cuDNN cannot be used, NULL when it can.  Ends the
 * run as `infra` where it is installed and damaged. */
const char *cudnn_unsupported(const struct run *run);

/* The functions, once cudnn_unsupported returned NULL. */
const struct cudnn_table *cudnn_api(void);

#ifdef __cplusplus
}
#endif

#endif
