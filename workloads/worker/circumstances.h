/* Circumstances of a run: load on its device, poisoned memory, moved
 * allocations (PROTOCOL.md, "Circumstances").  They may change how a race goes and what a
 * defect reads, and never what is to be computed: they belong neither to the case nor to
 * the environment, and the `start` of a run says them.
 *
 * One for the process, as the run is. */
#ifndef WORKLOADS_WORKER_CIRCUMSTANCES_H
#define WORKLOADS_WORKER_CIRCUMSTANCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workloads/worker/emit.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CONTENTION_MAX = 64 };

struct circumstances {
    int contention; /* loads on the run's device (load.h); 0: none */
    bool is_poisoned;
    uint32_t pattern; /* what memory is filled with, fresh and freed, if is_poisoned */
    bool is_jittered;
    uint64_t jitter; /* what sizes and offsets of allocations are drawn from */
};

/* The circumstances from here on.  Before the process has a second thread. */
void circumstances_set(const struct circumstances *circumstances);
const struct circumstances *circumstances_now(void);

/* 64 bits that differ between processes. */
uint64_t circumstances_random(void);

/* How many bytes the next allocation, the process's COUNTth, is to be larger and further
 * back: a multiple of ALIGNMENT (a power of two) below LIMIT; 0 without jitter. */
size_t circumstances_jitter(uint64_t count, size_t alignment, size_t limit);

/* Adds the member "circumstances", where there are any. */
void circumstances_emit(struct emit *emit);

#ifdef __cplusplus
}
#endif

#endif
