/* What the completed runs of a cell that were asked for alike beside their case
 * (job_item.options) add up to: on each device, and over all devices.  It decides what a
 * control vouches for (daemon/evidence/verdict.h).  Private to db/. */
#ifndef DB_CELLS_ALIKE_H
#define DB_CELLS_ALIKE_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "db/cells_rows.h"

struct run_record;
struct tx;

enum { CELLS_ALIKE_TEXT_SIZE = VERDICT_REASON_SIZE };

/* Counts RUN, which completed, in ROW's cell; keeps ROW's number of devices true. */
enum err_code cells_alike_fold(struct tx *tx, struct cell_row *row,
                               const struct run_record *run, struct err *err);

/* In how many ways of asking CELL varied. */
enum err_code cells_alike_varied(struct tx *tx, int64_t cell, int64_t *ret_count,
                                 struct err *err);

/* What is stored of CELL and what its runs give, each as a line of that which the other
 * lacks: both "" where they are the same. */
enum err_code cells_alike_compare(struct tx *tx, int64_t cell,
                                  char ret_stored[CELLS_ALIKE_TEXT_SIZE],
                                  char ret_fresh[CELLS_ALIKE_TEXT_SIZE], struct err *err);

#endif
