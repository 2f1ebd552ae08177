/* What a status of cuDNN means for the run, and what its library claims about an
 * algorithm. */
#ifndef CUDA_CUDNN_OUTCOME_H
#define CUDA_CUDNN_OUTCOME_H

#include "cuda/cudnn/loader.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether STATUS of cuDNN MAJOR says that this library cannot do what was asked: 9 in
 * cuDNN 8, the 3000s in cuDNN 9. */
bool cudnn_says_unsupported(int major, int status);

/* Ends RUN unless STATUS, what CALL returned, is success: as `unsupported` where cuDNN
 * says so, else as `infra`, with cuDNN's own words. */
void cudnn_check(struct run *run, cudnnStatus_t status, const char *call);

/* CUDNN_CALL(run, cudnnCreate, &handle): calls the table's function and checks. */
#define CUDNN_CALL(run, function, ...)                                                   \
    cudnn_check(run, cudnn_api()->function(__VA_ARGS__), #function)

/* The claim of perf.determinism: "deterministic" or "non-deterministic". */
const char *cudnn_claim(cudnnDeterminism_t determinism);

#ifdef __cplusplus
}
#endif

#endif
