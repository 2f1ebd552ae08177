/* The traces of runs in the database.  Equal traces are stored once: two runs whose
 * traces have one number saw the same, record by record. */
#ifndef DB_TRACES_H
#define DB_TRACES_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/base/id.h"
#include "daemon/trace/trace.h"

struct tx;

/* Inside runs_finish: stores TRACE (NULL: nothing) with run ID. */
enum err_code runs_store_trace(struct tx *tx, const char *id, const struct trace *trace,
                               struct err *err);

/* The trace of run ID; with ret_number, if not NULL, its number.  ERR_NOT_FOUND: there is
 * no such run, or it has none.  ret_trace: caller releases; empty unless ERR_OK. */
enum err_code runs_trace(struct tx *tx, const char *id, struct trace *ret_trace,
                         int64_t *ret_number, struct err *err);

/* By its number. */
enum err_code traces_get(struct tx *tx, int64_t number, struct trace *ret_trace,
                         struct err *err);

/* Unpacks every trace and compares it with what its runs say of it.  REPORT(arg, line)
 * gets every fault. */
enum err_code traces_check(struct tx *tx, void (*report)(void *arg, const char *line),
                           void *arg, int64_t *ret_traces, int64_t *ret_damaged,
                           struct err *err);

#endif
