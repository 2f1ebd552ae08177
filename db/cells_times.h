/* The histogram of times of a cell (daemon/evidence/times.h), private to db/. */
#ifndef DB_CELLS_TIMES_H
#define DB_CELLS_TIMES_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "db/cells.h"

struct tx;

/* Counts one more completed run, which computed under no circumstances (load beside it
 * would enter the cost of determinism); MEDIAN_NS 0: it has no time, and nothing is
 * counted. */
enum err_code cells_times_add(struct tx *tx, int64_t cell, int64_t median_ns,
                              struct err *err);

/* Fills cell->times. */
enum err_code cells_times_load(struct tx *tx, struct cell *cell, struct err *err);

/* TIMES_BUCKETS counts as stored, and as the stored runs give them. */
enum err_code cells_times_stored(struct tx *tx, int64_t cell, int64_t *ret_counts,
                                 struct err *err);
enum err_code cells_times_recount(struct tx *tx, int64_t cell, int64_t *ret_counts,
                                  struct err *err);

#endif
