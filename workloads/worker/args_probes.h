/* What the command line says about probes. */
#ifndef WORKLOADS_WORKER_ARGS_PROBES_H
#define WORKLOADS_WORKER_ARGS_PROBES_H

#include <stdbool.h>
#include <stdint.h>

#include "workloads/worker/args.h"
#include "workloads/worker/probes.h"

/* The values of the options; NULL where one is not given. */
struct args_probes {
    const char *probes;  /* "1" */
    const char *names;   /* "conv*" */
    const char *steps;   /* "10-20" */
    const char *capture; /* "0:37:conv1/forward": iteration, step, place */
};

/* Reads TEXTS for a run of ITERATIONS.  False, with one line in ret_message, when
 * something is wrong.  ret_request borrows the texts. */
bool args_probes_parse(const struct args_probes *texts, int iterations,
                       struct probes_request *ret_request,
                       char ret_message[ARGS_MESSAGE_SIZE]);

/* Reads the decimal digits at TEXT: no sign, no space, no base.  Returns where they end;
 * NULL when there are none or the value is above MAXIMUM. */
const char *args_decimal(const char *text, uint64_t maximum, uint64_t *ret_value);

#endif
