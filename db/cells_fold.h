/* Adding a finished run to its cell.  Counts are sums, minima, maxima and sets, and what
 * depends on order (runs since the last failure) goes by run id, so any order of arrival
 * gives the same cell.  Private to db/. */
#ifndef DB_CELLS_FOLD_H
#define DB_CELLS_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/evidence/verdict.h"
#include "daemon/jobs/run.h"

struct tx;

/* The cell of a case and an environment (numbers), made if there is none. */
enum err_code cells_place(struct tx *tx, int64_t case_key, int64_t environment,
                          int64_t *ret_id, struct err *err);

/* Adds RUN, stored already as finished in cell run->cell, with its DIGESTS (completed
 * runs only; others pass 0), and judges the cell and, if it is a control, those that
 * depend on it.  Changes go to the history and the outbox. */
enum err_code cells_fold(struct tx *tx, const struct run_record *run,
                         const struct run_digest *digests, int digest_count,
                         enum verdict *ret_verdict, bool *ret_changed, struct err *err);

#endif
