/* cuBLAS as reprod uses it, the same in cuBLAS 11 to 13; see library/abi.h.  Matrices are
 * column-major, `ld…` is the distance of their columns; alpha, beta and results of scalar
 * kind are in host memory.
 *
 * Source: NVIDIA's cuBLAS documentation. */
#ifndef CUDA_CUBLAS_ABI_H
#define CUDA_CUBLAS_ABI_H

#include <stddef.h>

#include "cuda/library/abi.h"

typedef struct cublasContext *cublasHandle_t;

typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_MAPPING_ERROR = 11,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_INTERNAL_ERROR = 14,
    CUBLAS_STATUS_NOT_SUPPORTED = 15,
    CUBLAS_STATUS_LICENSE_ERROR = 16,
} cublasStatus_t;

typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 } cublasOperation_t;

typedef enum {
    CUBLAS_ATOMICS_NOT_ALLOWED = 0,
    CUBLAS_ATOMICS_ALLOWED = 1,
} cublasAtomicsMode_t;

typedef enum {
    CUBLAS_DEFAULT_MATH = 0,
    CUBLAS_TENSOR_OP_MATH = 1,
    CUBLAS_PEDANTIC_MATH = 2,
    CUBLAS_TF32_TENSOR_OP_MATH = 3,
    CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16, /* to be or-ed to another */
} cublasMath_t;

cublasStatus_t cublasGetProperty(enum library_property property, int *ret_value);
const char *cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasCreate_v2(cublasHandle_t *ret_handle);
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, struct CUstream_st *stream);
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace,
                                     size_t workspace_bytes);
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t on_a,
                              cublasOperation_t on_b, int rows, int columns, int inner,
                              const float *alpha, const float *a, int lda, const float *b,
                              int ldb, const float *beta, float *c, int ldc);
/* Strides are in elements. */
cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t on_a,
                                         cublasOperation_t on_b, int rows, int columns,
                                         int inner, const float *alpha, const float *a,
                                         int lda, long long stride_a, const float *b,
                                         int ldb, long long stride_b, const float *beta,
                                         float *c, int ldc, long long stride_c,
                                         int count);

#endif
