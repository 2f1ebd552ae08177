/* Finds NCCL in this process (library/library.h says where).  Its version is the fact
 * "nccl" of every run's environment. */
#ifndef CUDA_NCCL_LOADER_H
#define CUDA_NCCL_LOADER_H

#include "cuda/library/library.h"
#include "cuda/nccl/abi.h"
#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NCCL_FUNCTIONS(X)                                                                \
    X(ncclGetVersion)                                                                    \
    X(ncclGetErrorString)                                                                \
    X(ncclCommInitAll)                                                                   \
    X(ncclCommDestroy)                                                                   \
    X(ncclGroupStart)                                                                    \
    X(ncclGroupEnd)                                                                      \
    X(ncclAllReduce)

#define NCCL_DECLARE(function) LIBRARY_POINTER(function) function;
struct nccl_table {
    NCCL_FUNCTIONS(NCCL_DECLARE)
};
#undef NCCL_DECLARE

/* For `unsupported` of a variant: why NCCL cannot be used, NULL when it can.  Ends the
 * run as `infra` where it is installed and damaged. */
const char *nccl_unsupported(const struct run *run);

/* The functions, once nccl_unsupported returned NULL. */
const struct nccl_table *nccl_api(void);

/* Ends RUN as `infra` unless STATUS, what CALL returned, is success. */
void nccl_check(struct run *run, ncclResult_t status, const char *call);

/* NCCL_CALL(run, ncclGroupStart): calls the table's function and checks. */
#define NCCL_CALL(run, function, ...)                                                    \
    nccl_check(run, nccl_api()->function(__VA_ARGS__), #function)

#ifdef __cplusplus
}
#endif

#endif
