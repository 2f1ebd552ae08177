/* The witness of a cell: what varied beside it, where nothing of its own did. */
#ifndef DB_VIEWS_CELL_WITNESS_H
#define DB_VIEWS_CELL_WITNESS_H

#include <stdbool.h>

#include "daemon/base/err.h"
#include "daemon/jobs/cell.h"
#include "daemon/jobs/options.h"

struct tx;

struct cell_witness {
    struct cell cell;
    char conditions[RUN_OPTIONS_SIZE]; /* under which it varied, "" for none */
};

/* A witness of CELL, which a framework computed, gave one digest, and is inconclusive
 * since no control of its own varied: a cell of another operation of the same framework
 * in the same environment, switched as CELL's control is (the same variant), of the same
 * kind, size and dtype, that varies and computes from its inputs, in runs under
 * conditions under which CELL has enough runs.  Of several the one with the most digests
 * in its runs, then the first by name.  *RET_FOUND false: there is none, or CELL is no
 * such cell. */
enum err_code cell_witness_of(struct tx *tx, const struct cell *cell, bool *ret_found,
                              struct cell_witness *ret_witness, struct err *err);

#endif
