/* Finds cuBLAS in this process (library/library.h says where).
 *
 * Loading it costs some 80 ms, and no run that does not call it pays that: the fact
 * "cublas" of every run's environment is the build of its file, "13 build
 * 3f947abf607f5961", which also tells patched libraries of one version apart. */
#ifndef CUDA_CUBLAS_LOADER_H
#define CUDA_CUBLAS_LOADER_H

#include "cuda/cublas/abi.h"
#include "cuda/library/library.h"
#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(function); all are in cuBLAS 11 and later, with the same prototypes. */
#define CUBLAS_FUNCTIONS(X)                                                              \
    X(cublasGetProperty)                                                                 \
    X(cublasGetStatusString)                                                             \
    X(cublasCreate_v2)                                                                   \
    X(cublasSetStream_v2)                                                                \
    X(cublasSetWorkspace_v2)                                                             \
    X(cublasSetAtomicsMode)                                                              \
    X(cublasSetMathMode)                                                                 \
    X(cublasSgemm_v2)                                                                    \
    X(cublasSgemmStridedBatched)

#define CUBLAS_DECLARE(function) LIBRARY_POINTER(function) function;
struct cublas_table {
    CUBLAS_FUNCTIONS(CUBLAS_DECLARE)
};
#undef CUBLAS_DECLARE

/* For `unsupported` of a variant: why cuBLAS cannot be used, NULL when it can.  Loads it.
 * Ends the run as `infra` where it is installed and damaged. */
const char *cublas_unsupported(const struct run *run);

/* The functions, once cublas_unsupported returned NULL. */
const struct cublas_table *cublas_api(void);

/* "13.1.0" once loaded. */
const char *cublas_version(void);

/* Ends RUN unless STATUS, what CALL returned, is success: as `unsupported` where cuBLAS
 * says that it cannot do this, else as `infra`. */
void cublas_check(struct run *run, cublasStatus_t status, const char *call);

/* CUBLAS_CALL(run, cublasCreate_v2, &handle): calls the table's function and checks. */
#define CUBLAS_CALL(run, function, ...)                                                  \
    cublas_check(run, cublas_api()->function(__VA_ARGS__), #function)

#ifdef __cplusplus
}
#endif

#endif
