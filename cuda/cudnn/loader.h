/* Finds cuDNN 8 or 9 in this process (library.h says where), at first need.  Its version
 * is the fact "cudnn" of every run's environment. */
#ifndef CUDA_CUDNN_LOADER_H
#define CUDA_CUDNN_LOADER_H

#include "cuda/cudnn/abi.h"
#include "cuda/cudnn/functions.h"
#include "cuda/cudnn/usable.h"
#include "cuda/library/library.h"
#include "workloads/workload.h"

/* The functions as one table of typed pointers, for cuDNN 8 as for cuDNN 9: no type in
 * the prototype of a function of the list differs between the two. */
#define CUDNN_DECLARE(function) LIBRARY_POINTER(function) function;
struct cudnn_table {
    CUDNN_FUNCTIONS(CUDNN_DECLARE)
    CUDNN_OPTIONAL_FUNCTIONS(CUDNN_DECLARE)
};
#undef CUDNN_DECLARE

#ifdef __cplusplus
extern "C" {
#endif

/* The functions, once cudnn_unsupported returned NULL. */
const struct cudnn_table *cudnn_api(void);

/* What a status means for the run.  The numbers of cudnnStatus_t differ between 8 and 9:
 * a status is compared with 0 only, everything else is asked here. */

/* Whether STATUS says that this library cannot do what was asked, or not on this GPU: 9
 * and 6 in cuDNN 8, the 3000s in cuDNN 9. */
bool cudnn_says_unsupported(cudnnStatus_t status);

/* Ends RUN unless STATUS, what CALL returned, is success: as `unsupported` where cuDNN
 * says so, else as `infra`, with cuDNN's own words. */
void cudnn_check(struct run *run, cudnnStatus_t status, const char *call);

/* CUDNN_CALL(run, cudnnCreate, &handle): calls the table's function and checks. */
#define CUDNN_CALL(run, function, ...)                                                   \
    cudnn_check(run, cudnn_api()->function(__VA_ARGS__), #function)

/* The claim of perf.determinism: "deterministic" or "non-deterministic". */
const char *cudnn_claim(cudnnDeterminism_t determinism);
/* Whether CLAIM, or NULL, says that an algorithm is not deterministic. */
bool cudnn_warns(const char *claim);

#ifdef __cplusplus
}
#endif

#endif
