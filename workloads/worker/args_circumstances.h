/* What the command line says about the circumstances of a run. */
#ifndef WORKLOADS_WORKER_ARGS_CIRCUMSTANCES_H
#define WORKLOADS_WORKER_ARGS_CIRCUMSTANCES_H

#include <stdbool.h>

#include "workloads/worker/args.h"
#include "workloads/worker/circumstances.h"

/* The values of the options; NULL where one is not given. */
struct args_circumstances {
    const char *contention; /* "4" */
    const char *poison;     /* "random", or 8 hex digits */
    const char *jitter;     /* "random", or a decimal seed */
};

/* Reads TEXTS; draws what is random.  False, with one line in ret_message, when something
 * is wrong. */
bool args_circumstances_parse(const struct args_circumstances *texts,
                              struct circumstances *ret_circumstances,
                              char ret_message[ARGS_MESSAGE_SIZE]);

#endif
