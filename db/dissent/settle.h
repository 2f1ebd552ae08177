/* Cells of many devices are judged once a commit, and not after each run.
 *
 * What devices show of a cell that has more than one digest is told from all of them,
 * which costs as much as there are.  So the runs of one commit are added to such a cell
 * with the verdict that it had; before the commit it is judged, once, with all of them.
 * Whoever reads sees commits only: there each verdict is that of the runs that are
 * stored.  Until then, within the commit, a verdict is that of the commit before.
 *
 * Private to db/. */
#ifndef DB_DISSENT_SETTLE_H
#define DB_DISSENT_SETTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/base/id.h"
#include "daemon/jobs/cell.h"

enum { CELLS_SETTLE_DEVICES = 64 }; /* with more, a cell is judged once a commit */

struct tx;

/* A cell that is to be judged. */
struct unsettled {
    int64_t cell;
    char run[ID_SIZE]; /* the last that was added */
    int64_t now_ms;    /* when it ended */
    int64_t distinct;  /* digests before the first that was added */
};

/* A commit begins: whoever began it calls cells_settle before its end. */
void cells_settle_begin(struct tx *tx);

/* One write of the commit begins; it was rolled back: what is to be judged is what it was
 * at its begin. */
void cells_settle_mark(struct tx *tx);
void cells_settle_back(struct tx *tx);

/* Whether CELL, to which a run was added, is judged later.  Not before it was judged with
 * two digests, so that it keeps no verdict of before they differed. */
bool cells_settle_defers(const struct tx *tx, const struct cell *cell);
void cells_settle_later(struct tx *tx, const struct unsettled *unsettled);

bool cells_settle_waits(const struct tx *tx, int64_t cell);

/* Judges CELL now, if it is to be judged. */
enum err_code cells_settle_one(struct tx *tx, int64_t cell, struct err *err);

/* Judges all. */
enum err_code cells_settle(struct tx *tx, struct err *err);

#endif
