/* Cells as rows, with the histograms of their times.  Private to db/. */
#ifndef DB_CELLS_ROWS_H
#define DB_CELLS_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/base/id.h"
#include "daemon/jobs/cell.h"

struct query;
struct tx;

/* A row of table cell with what judging and folding need beside it. */
struct cell_row {
    struct cell cell;
    int64_t case_key, environment;          /* numbers */
    char no_control[CASE_TITLE_SIZE];       /* "" when the workload has a control */
    char last_failed_run[ID_SIZE];          /* "" when none failed */
    int64_t digest_runs, digest_iterations; /* of cell.digest */
};

/* The columns that cell_rows_take reads, of cell c, case_key k and environment e. */
#define CELL_ROW_COLUMNS                                                                 \
    "c.id, k.workload, k.version, k.variant, k.size, k.dtype, k.seed, k.is_control,"     \
    " e.id, c.completed, c.unsupported, c.timeout, c.crashed, c.out_of_memory, c.lost,"  \
    " c.infra, c.cancelled, c.invalid, c.iterations, c.distinct_digests, c.devices,"     \
    " c.disturbed, c.contended, c.claimed, c.warned,"                                    \
    " c.completed_since_failure, c.last_completed_ms, c.verdict, c.reason,"              \
    " c.changed_ms, c.first_ms, c.last_ms, c.min_ns, c.max_ns, c.median_ns_sum,"         \
    " c.digest, c.case_key, c.environment, k.no_control, c.last_failed_run,"             \
    " c.digest_runs, c.digest_iterations"

void cell_rows_take(struct query *q, struct cell_row *ret_row);

/* ERR_NOT_FOUND. */
enum err_code cell_rows_load(struct tx *tx, int64_t id, struct cell_row *ret_row,
                             struct err *err);

/* The histogram of the cell's times (daemon/evidence/times.h).
 *
 * Counts one more completed run, which computed under no circumstances (load beside it
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
