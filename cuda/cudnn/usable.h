/* Whether a variant can call cuDNN: for `.cu` files, which know none of cuDNN's types.
 * The functions that compute with it have headers of that kind too. */
#ifndef CUDA_CUDNN_USABLE_H
#define CUDA_CUDNN_USABLE_H

#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* loader.h has the contract. */
const char *cudnn_unsupported(const struct run *run);

/* Of the library that is used: "9.19.0". */
const char *cudnn_version(void);

/* The hook `unsupported` of a variant that computes with cuDNN. */
static inline const char *cudnn_unusable(const struct run *run)
{
    return cudnn_unsupported(run);
}

#ifdef __cplusplus
}
#endif

#endif
