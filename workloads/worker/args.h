/* The command line of the worker (workloads/PROTOCOL.md), read strictly: whatever is not
 * understood completely is refused, with the nearest valid name. */
#ifndef WORKLOADS_WORKER_ARGS_H
#define WORKLOADS_WORKER_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "workloads/instruments/digest.h"
#include "workloads/worker/backend.h"
#include "workloads/worker/circumstances.h"
#include "workloads/worker/probes.h"
#include "workloads/worker/registry.h"
#include "workloads/workload.h"

enum { ARGS_MESSAGE_SIZE = 512 };

enum args_command {
    ARGS_NONE,
    ARGS_RUN,
    ARGS_CHECK,
    ARGS_RESUME,
    ARGS_LOAD,
    ARGS_PROBE,
    ARGS_PROCESSES,
    ARGS_CATALOGUE,
    ARGS_VERSION,
    ARGS_HELP
};

struct args {
    enum args_command command;
    /* For ARGS_RUN, ARGS_CHECK and ARGS_RESUME, the last two for ARGS_LOAD too; what is
     * not given is the workload's first variant, size and dtype, seed 1, 10 iterations,
     * the backend's number of threads and its first device. */
    const struct workload *workload;
    const struct workload_variant *variant;
    const struct workload_size *size;
    enum dtype dtype;
    uint64_t seed;
    int iterations;                     /* 1 .. 1000 */
    struct circumstances circumstances; /* a random pattern or seed is drawn already */
    int threads;                        /* 1 .. backend->threads_max */
    const char *device; /* NULL: the first.  Borrowed from argv; not yet looked up */
    struct probes_request probes; /* not for ARGS_CHECK; borrowed from argv */
    int check_seconds; /* for ARGS_RUN: compare the outputs of an iteration with the
                          reference, for so long at most; 0: do not */
    bool has_passed;   /* of one whose digest is not this, which passed before */
    struct digest passed;
};

/* Reads argv[1 …].  False, with one line in ret_message, when anything is wrong. */
bool worker_args_parse(const struct registry *registry, const struct backend *backend,
                       int argc, char *const *argv, struct args *ret_args,
                       char ret_message[ARGS_MESSAGE_SIZE]);

#endif
