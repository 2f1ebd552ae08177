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

/* What is to be judged, and told of (db/jobs_progress.h), where a savepoint begins.  Once
 * that was rolled back, it is so again.  Released in either case. */
struct settle_mark {
    struct unsettled *list; /* owned */
    int count;
    int progressed; /* jobs */
};
void cells_settle_mark(const struct tx *tx, struct settle_mark *ret_mark);
void cells_settle_back(struct tx *tx, struct settle_mark *mark);
void cells_settle_release(struct settle_mark *mark);

/* Whether CELL, to which a run was added, is judged later.  Not before it was judged with
 * two digests, so that it keeps no verdict of before they differed.  CONFIRMED: the run
 * showed what a reproducible cell shows. */
bool cells_settle_defers(const struct tx *tx, const struct cell *cell, bool confirmed);
void cells_settle_later(struct tx *tx, const struct unsettled *unsettled);

/* CELL was judged with all its runs. */
void cells_settle_judged(struct tx *tx, int64_t cell);

bool cells_settle_waits(const struct tx *tx, int64_t cell);

/* Judges CELL now, if it is to be judged. */
enum err_code cells_settle_one(struct tx *tx, int64_t cell, struct err *err);

/* Judges all. */
enum err_code cells_settle(struct tx *tx, struct err *err);

#endif
