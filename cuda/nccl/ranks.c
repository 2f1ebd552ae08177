#include "cuda/nccl/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char variable[] = "NCCL_ALGO";

/* NCCL reads the variable when it makes communicators.  It is gone before anything is
 * reported: a choice of this run must not pass for one of its environment. */
void nccl_ranks_init(struct run *run, struct nccl_ranks *ranks)
{
    const char *set = getenv(variable);
    char *before = set ? strdup(set) : NULL;
    ncclResult_t status;

    setenv(variable, ranks->algorithm, 1);
    status = nccl_api()->ncclCommInitAll(ranks->comms, ranks->count, ranks->devices);
    if (before) {
        setenv(variable, before, 1);
    } else {
        unsetenv(variable);
    }
    free(before);
    nccl_check(run, status, "ncclCommInitAll");
    snprintf(ranks->description, sizeof ranks->description,
             "ncclAllReduce, NCCL_ALGO=%s, %d GPUs of one process", ranks->algorithm,
             ranks->count);
}

void nccl_ranks_release(struct run *run, struct nccl_ranks *ranks)
{
    for (int i = 0; i < ranks->count; i++) {
        NCCL_CALL(run, ncclCommDestroy, ranks->comms[i]);
    }
}

void nccl_ranks_reduce(struct run *run, const struct nccl_ranks *ranks,
                       float *const *buffers, size_t count)
{
    nccl_check(run, nccl_api()->ncclGroupStart(), "ncclGroupStart");
    for (int i = 0; i < ranks->count; i++) {
        NCCL_CALL(run, ncclAllReduce, buffers[i], buffers[i], count, ncclFloat32, ncclSum,
                  ranks->comms[i], ranks->streams[i]);
    }
    nccl_check(run, nccl_api()->ncclGroupEnd(), "ncclGroupEnd");
}
