/* Whether a device departs only while others use it: what its runs' telemetry tells of
 * foreign processes.  Private to db/. */
#ifndef DB_DISSENT_BESIDE_OTHERS_H
#define DB_DISSENT_BESIDE_OTHERS_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/evidence/dissent.h"

struct tx;

/* SQL: processes that are not the agent's used the device of the run of T, a row of
 * run_telemetry. */
#define BESIDE_OTHERS(t)                                                                 \
    "(ifnull(json_array_length(" t                                                       \
    ".at_start, '$.foreign_processes'), 0) > 0"                                          \
    " OR ifnull(json_array_length(" t ".at_end, '$.foreign_processes'), 0) > 0)"

/* How many of the devices that are named in CELL, whose ROWS were judged, depart in such
 * runs only. */
enum err_code beside_others_count(struct tx *tx, int64_t cell,
                                  const struct dissent_row *rows, int count,
                                  int64_t *ret_count, struct err *err);

#endif
