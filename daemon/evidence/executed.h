/* What nvcc's PTX showed of each CUDA variant when a CPU executed it: what `make
 * check-ptx` left in tests/ptx/results.json, which is built in.  More than the simulator,
 * which compiles the sources with another compiler, and less than a GPU: nothing there is
 * verified on one. */
#ifndef DAEMON_EVIDENCE_EXECUTED_H
#define DAEMON_EVIDENCE_EXECUTED_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/err.h"

/* What it says of one variant.  Texts are owned by the set. */
struct executed {
    const char *date;    /* as in the API */
    const char *toolkit; /* of CUDA: "release 13.0, V13.0.88" */
    const char *target;  /* of the PTX: "sm_75" */
    const char *sizes;   /* "small, medium" */
    int version;         /* of the workload that was executed */
    const char *outcome; /* "passed" or "failed" */
};

struct executed_set;

/* What is built in; empty where nothing is.  Caller frees with executed_set_free. */
struct executed_set *executed_set_load(void);
struct executed_set *executed_set_new(void);
void executed_set_free(struct executed_set *set); /* NULL is fine */

/* Takes TEXT into an empty set; NAME is for messages.  ERR_INVALID says what is wrong
 * with it: the set stays empty. */
enum err_code executed_set_read(struct executed_set *set, const char *name,
                                const char *text, size_t length, struct err *err);

/* False where VARIANT of WORKLOAD was not executed. */
bool executed_find(const struct executed_set *set, const char *workload,
                   const char *variant, struct executed *ret_executed);

/* What that is worth for VERSION of the workload: its outcome, or "outdated". */
const char *executed_outcome(const struct executed *executed, int version);

#endif
