/* NCCL 2 as reprod uses it; see library/abi.h.  Source: NVIDIA's NCCL documentation. */
#ifndef CUDA_NCCL_ABI_H
#define CUDA_NCCL_ABI_H

#include <stddef.h>

#include "cuda/library/abi.h"

typedef struct ncclComm *ncclComm_t;

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7,
} ncclResult_t;

typedef enum {
    ncclInt32 = 2,
    ncclInt64 = 4,
    ncclFloat16 = 6,
    ncclFloat32 = 7,
    ncclFloat = 7,
    ncclFloat64 = 8,
    ncclDouble = 8,
    ncclBfloat16 = 9,
} ncclDataType_t;

typedef enum {
    ncclSum = 0,
    ncclProd = 1,
    ncclMax = 2,
    ncclMin = 3,
    ncclAvg = 4,
} ncclRedOp_t;

ncclResult_t ncclGetVersion(int *ret_version);
const char *ncclGetErrorString(ncclResult_t status);
/* All devices of this process at once; ret_all has room for COUNT. */
ncclResult_t ncclCommInitAll(ncclComm_t *ret_all, int count, const int *devices);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count,
                           ncclDataType_t type, ncclRedOp_t operation, ncclComm_t comm,
                           struct CUstream_st *stream);

#endif
