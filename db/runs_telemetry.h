/* The telemetry of a run in the database: inside runs_finish, and for one run. */
#ifndef DB_RUNS_TELEMETRY_H
#define DB_RUNS_TELEMETRY_H

#include "daemon/base/err.h"
#include "db/runs.h"

struct tx;

/* Stores what RESULT has of it, if anything, with run ID. */
enum err_code runs_store_telemetry(struct tx *tx, const char *id,
                                   const struct run_result *result, struct err *err);

#endif
