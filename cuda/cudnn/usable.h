/* Whether a variant can call cuDNN: for `.cu` files, which know none of cuDNN's types.
 * The functions that compute with it have headers of that kind too. */
#ifndef CUDA_CUDNN_USABLE_H
#define CUDA_CUDNN_USABLE_H

#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For `unsupported` of a variant: why cuDNN cannot be used, NULL when it can.  Ends the
 * run as `infra` where it is installed and damaged. */
const char *cudnn_unsupported(const struct run *run);

/* Of the library that is used: "9.19.0"; NULL when nothing was loaded. */
const char *cudnn_version(void);

#ifdef __cplusplus
}
#endif

#endif
