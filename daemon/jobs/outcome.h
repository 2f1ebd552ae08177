/* How a run ended.  Not a verdict: one run shows nothing by itself. */
#ifndef DAEMON_JOBS_OUTCOME_H
#define DAEMON_JOBS_OUTCOME_H

#include <stdbool.h>

enum outcome {
    OUTCOME_COMPLETED,     /* proof of work accepted; the only one that is evidence */
    OUTCOME_UNSUPPORTED,   /* this variant cannot do this case here, and said why */
    OUTCOME_TIMEOUT,       /* killed at its deadline */
    OUTCOME_CRASHED,       /* died by a signal or an exit status of its own */
    OUTCOME_OUT_OF_MEMORY, /* the device's memory did not suffice */
    OUTCOME_LOST,          /* reprod lost sight of it: agent, host or daemon went away */
    OUTCOME_INFRA,     /* the machine was not usable: driver, libraries, start failed */
    OUTCOME_CANCELLED, /* a person asked for it, or a site took its host back */
    OUTCOME_INVALID,   /* it said something, but not what a run must say */
    OUTCOME_COUNT
};

/* "completed", …: the stable name in schema, API and pages. */
const char *outcome_name(enum outcome outcome);

/* Returns 0, or -1 if NAME is not an outcome. */
int outcome_parse(const char *name, enum outcome *ret_outcome);

/* Whether it speaks against the workload or device: timeout, crashed, out_of_memory,
 * invalid.  Lost, infra and cancelled speak against neither and are not counted. */
bool outcome_is_failure(enum outcome outcome);

/* Whether the job got an answer from it: completed, unsupported or a failure.  The others
 * are run again (under a new id) as long as the job allows. */
bool outcome_is_answer(enum outcome outcome);

#endif
