/* Where a run belongs: the environment it said, or the one it is counted in.  Private to
 * db/. */
#ifndef DB_RUNS_ENVIRONMENT_H
#define DB_RUNS_ENVIRONMENT_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "db/runs.h"

struct tx;

/* Stores the environment and libraries that RESULT reports, and that they are the latest
 * of the run's device and stack.  Numbers are 0 where it never said. */
enum err_code runs_store_environment(struct tx *tx, const struct run_record *run,
                                     const struct run_result *result,
                                     int64_t *ret_environment, int64_t *ret_libraries,
                                     struct err *err);

/* The environment in which RUN counts: ENVIRONMENT, the one it said (0: none); else, for
 * an answer, the latest that its device reported with its stack; else 0. */
enum err_code runs_counting_environment(struct tx *tx, const struct run_record *run,
                                        int64_t environment, int64_t *ret_environment,
                                        struct err *err);

#endif
