/* Cells in the database, kept up to date in the transaction that stores a run.  No
 * function here reads run rows except cells_rebuild and cells_recompute.
 */
#ifndef DB_CELLS_H
#define DB_CELLS_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/cell.h"

struct tx;

/* All cells of one environment that a job requested, in order of workload, variant, size,
 * dtype, seed, version (seeds as signed numbers).  CELL is borrowed by VISIT for the
 * call.  AS_OF_MS 0: now; else as the history has them (evidence then holds completed
 * runs, iterations and distinct digests only, and times nothing). */
enum err_code cells_each(struct tx *tx, const char *environment, int64_t as_of_ms,
                         void (*visit)(void *arg, const struct cell *cell), void *arg,
                         struct err *err);

/* ERR_NOT_FOUND. */
enum err_code cells_get(struct tx *tx, int64_t id, struct cell *ret_cell,
                        struct err *err);

/* The control that the cost of cell ID is compared with: of its siblings in the same
 * environment (daemon/jobs/case.h), the first by name that has enough runs.
 * ERR_NOT_FOUND: there is none, or the cell is a control itself. */
enum err_code cells_get_control(struct tx *tx, int64_t id, struct cell *ret_control,
                                struct err *err);

/* When the last of all runs that count in a cell ended; 0: none did. */
enum err_code cells_latest(struct tx *tx, int64_t *ret_ms, struct err *err);

/* The cells whose runs all claim to be deterministic and gave more than one digest:
 * newest first, at most LIMIT, ids less than BEFORE (0: from the newest).  Without times.
 */
enum err_code cells_each_broken_claim(struct tx *tx, int64_t before, int limit,
                                      void (*visit)(void *arg, const struct cell *cell),
                                      void *arg, struct err *err);

/* The digests of cell ID, most frequent first, at most LIMIT.  Unknown cells have none.
 */
enum err_code cells_each_digest(struct tx *tx, int64_t id, int limit,
                                void (*visit)(void *arg,
                                              const struct cell_digest *digest),
                                void *arg, struct err *err);

/* The algorithms that the completed runs of cell ID say they used, most frequent first,
 * at most LIMIT.  Unknown cells have none. */
enum err_code cells_each_algorithm(struct tx *tx, int64_t id, int limit,
                                   void (*visit)(void *arg,
                                                 const struct cell_algorithm *algorithm),
                                   void *arg, struct err *err);

/* What the completed runs of cell ID add up to under each of their conditions, in order
 * of these, at most LIMIT.  Unknown cells have none. */
enum err_code
cells_each_conditions(struct tx *tx, int64_t id, int limit,
                      void (*visit)(void *arg, const struct cell_conditions *conditions),
                      void *arg, struct err *err);

/* The history of cell ID, newest first, at most LIMIT, older than BEFORE_MS (0: from the
 * newest).  Unknown cells have none. */
enum err_code cells_each_change(struct tx *tx, int64_t id, int64_t before_ms, int limit,
                                void (*visit)(void *arg,
                                              const struct cell_change *change),
                                void *arg, struct err *err);

/* Makes cell ID what its stored runs add up to, from nothing, and judges it and what
 * depends on it: after the outcomes of its runs changed. */
enum err_code cells_rebuild(struct tx *tx, int64_t id, int64_t now_ms, struct err *err);

/* Recomputes every cell from the stored runs, in one read, and calls DIFFERS for each
 * that is not as stored (what: one line).  Returns how many were compared and differed.
 */
enum err_code cells_recompute(struct tx *tx,
                              void (*differs)(void *arg, int64_t cell, const char *what),
                              void *arg, int64_t *ret_compared, int64_t *ret_differing,
                              struct err *err);

#endif
