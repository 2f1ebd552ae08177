/* Products of matrices by cuBLAS: c[i] = a[i] * b[i], dense and row by row, float32.
 *
 * The mathematics are CUBLAS_DEFAULT_MATH, which computes with no fewer bits than its
 * operands have, without TF32, unless that is asked for.  cuBLAS tells neither its
 * algorithm nor how much of a workspace it uses; what was asked of it is reported. */
#ifndef CUDA_CUBLAS_MULTIPLY_H
#define CUDA_CUBLAS_MULTIPLY_H

#include "cuda/cublas/loader.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CUBLAS_STREAMS_MAX = 8, CUBLAS_DESCRIPTION_SIZE = 200 };

/* Without streams one call computes all products on the default stream. */
struct cublas_products {
    int count, rows, inner, columns;
    const float *a, *b; /* device memory */
    float *c;
    int stream_count; /* products go to the streams in turn, each product a call */
    struct CUstream_st *streams[CUBLAS_STREAMS_MAX]; /* one handle serves them all */
    void *workspaces[CUBLAS_STREAMS_MAX]; /* of the streams, if they have any */
    size_t workspace_bytes;               /* of each; 0: cuBLAS takes its own */
    const char *config; /* CUBLAS_WORKSPACE_CONFIG of the handle; NULL: as it is set */
    bool atomics;       /* CUBLAS_ATOMICS_ALLOWED */
    bool tf32;          /* CUBLAS_TF32_TENSOR_OP_MATH: operands may be rounded to TF32 */

    /* The rest is written here. */
    cublasHandle_t handle;
    char description[CUBLAS_DESCRIPTION_SIZE];
};

/* Makes the handle, computes all products once, and reports it as RUN's algorithm.  The
 * environment of this process is as it was when this returns. */
void cublas_products_prepare(struct run *run, struct cublas_products *products);

/* Starts the computation.  What cuBLAS refuses ends RUN (cublas_check). */
void cublas_products_compute(struct run *run, const struct cublas_products *products);

#ifdef __cplusplus
}
#endif

#endif
