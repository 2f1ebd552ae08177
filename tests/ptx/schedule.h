/* How the threads of a launch take turns.
 *
 * Without REPROD_PTX_SEED: block after block, thread after thread, in order.  With a seed
 * (0 counts as none): several blocks at one time, all in a permuted order, and a turn may
 * end before each atomic, volatile access and fence.  Where a turn cannot end elsewhere
 * nothing between two of them is divided: that is as if each of these were the only
 * places where other threads' writes show. */
#ifndef TESTS_PTX_SCHEDULE_H
#define TESTS_PTX_SCHEDULE_H

#include "tests/ptx/ptx.h"

struct ptx_launch {
    const struct ptx_kernel *kernel;
    uint32_t grid[3], block[3];
    uint32_t shared_bytes; /* static and dynamic */
    void **args;
};

/* Runs all of it.  The launch is one that a device takes. */
void schedule_run(const struct ptx_launch *launch);

#endif
