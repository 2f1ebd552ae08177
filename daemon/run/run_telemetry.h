/* Telemetry: what the sensors of a run's device said at its start and at its end, as the
 * worker reported it.  For people: it is no part of the environment, and no verdict
 * depends on it. */
#ifndef DAEMON_RUN_RUN_TELEMETRY_H
#define DAEMON_RUN_RUN_TELEMETRY_H

#include <jansson.h>

#include "daemon/base/err.h"

/* TELEMETRY is the member of that name of an event, NULL or JSON null where there is
 * none. Otherwise an object of strings, numbers, booleans and lists of strings, of at
 * most RUN_TELEMETRY_MAX bytes (db/runs.h) without white space: ERR_PROTOCOL says what
 * else it is. */
enum err_code run_telemetry_check(const json_t *telemetry, struct err *err);

/* As it is stored; NULL where there is none.  Caller frees. */
char *run_telemetry_text(const json_t *telemetry);

#endif
