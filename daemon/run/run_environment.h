/* The environment of a run: the facts inside which bit equality is expected, as the
 * worker reported them. */
#ifndef DAEMON_RUN_RUN_ENVIRONMENT_H
#define DAEMON_RUN_RUN_ENVIRONMENT_H

#include <jansson.h>
#include <stdint.h>

#include "daemon/base/err.h"

/* An object of strings and integers that names backend, model and worker_build, and
 * agrees with BACKEND and, if it has them, THREADS.  ERR_PROTOCOL says what is wrong. */
enum err_code run_environment_check(const json_t *environment, const char *backend,
                                    int64_t threads, struct err *err);

/* The canonical form: keys sorted, no white space.  Caller frees. */
char *run_environment_canonical(const json_t *environment);

/* For people: "cpu · AMD EPYC 9B14 · 2 threads · worker 3f2a91c0".  Caller frees. */
char *run_environment_title(const json_t *environment);

#endif
