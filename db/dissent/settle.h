/* Cells of many devices are judged once a commit, and not after each run.
 *
 * What devices show of a cell that has more than one digest is told from all of them,
 * which costs as much as there are.  So the runs of one commit are added to such a cell
 * with the verdict that it had; before the commit it is judged, once, with all of them.
 * So are those of a cell that is reproducible, while they show its digest: they change
 * how many runs it says, and nothing else.
 * Whoever reads sees commits only: there each verdict is that of the runs that are
 * stored.  Until then, within the commit, a verdict is that of the commit before.
 *
 * Private to db/. */
#ifndef DB_DISSENT_SETTLE_H
#define DB_DISSENT_SETTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/cell.h"

enum { CELLS_SETTLE_DEVICES = 64 }; /* with more, a cell is judged once a commit */

struct tx;

/* Whether CELL, to which a run was added, is judged later.  Not before it was judged with
 * two digests, so that it keeps no verdict of before they differed.  CONFIRMED: the run
 * showed what a reproducible cell shows. */
bool cells_settle_defers(const struct tx *tx, const struct cell *cell, bool confirmed);

/* Judges CELL now, if it is to be judged. */
enum err_code cells_settle_one(struct tx *tx, int64_t cell, struct err *err);

/* Judges all. */
enum err_code cells_settle(struct tx *tx, struct err *err);

#endif
