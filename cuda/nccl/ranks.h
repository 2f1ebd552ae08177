/* Ranks of NCCL: a communicator a GPU, all of them in this process. */
#ifndef CUDA_NCCL_RANKS_H
#define CUDA_NCCL_RANKS_H

#include "cuda/nccl/loader.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { NCCL_RANKS_MAX = 8, NCCL_DESCRIPTION_SIZE = 160 };

struct nccl_ranks {
    int count;
    int devices[NCCL_RANKS_MAX];                 /* CUDA's numbers */
    struct CUstream_st *streams[NCCL_RANKS_MAX]; /* of each device */
    const char *algorithm;                       /* NCCL_ALGO: "Ring", "Tree" */

    /* The rest is written here. */
    ncclComm_t comms[NCCL_RANKS_MAX];
    char description[NCCL_DESCRIPTION_SIZE];
};

/* Makes the communicators.  The environment of this process, where NCCL_ALGO may be set
 * to something else, is as it was when this returns. */
void nccl_ranks_init(struct run *run, struct nccl_ranks *ranks);
void nccl_ranks_release(struct run *run, struct nccl_ranks *ranks);

/* Starts an all-reduce: COUNT float32 values at each of BUFFERS, which are in the memory
 * of the ranks' devices, become their sums. */
void nccl_ranks_reduce(struct run *run, const struct nccl_ranks *ranks,
                       float *const *buffers, size_t count);

#ifdef __cplusplus
}
#endif

#endif
