/* The cells that the runs of a commit were added to, and that are judged before its end
 * (db/dissent/settle.h).  Private to db/. */
#ifndef DB_DISSENT_UNSETTLED_H
#define DB_DISSENT_UNSETTLED_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/id.h"

struct tx;

/* A cell that is to be judged. */
struct unsettled {
    int64_t cell;
    char run[ID_SIZE]; /* the last that was added */
    int64_t now_ms;    /* when it ended */
    int64_t distinct;  /* digests before the first that was added */
};

/* A commit begins: nothing is to be judged.  Whoever began it calls cells_settle before
 * its end. */
void unsettled_begin(struct tx *tx);

/* What is to be judged, and told of (db/jobs_progress.h), where a savepoint begins.  Once
 * that was rolled back, it is so again.  Released in either case. */
struct unsettled_mark {
    struct unsettled *list; /* owned */
    int count;
    int progressed; /* jobs */
};
void unsettled_mark(const struct tx *tx, struct unsettled_mark *ret_mark);
void unsettled_back(struct tx *tx, const struct unsettled_mark *mark);
void unsettled_release(struct unsettled_mark *mark);

/* A cell that is there keeps how many digests it had. */
void unsettled_add(struct tx *tx, const struct unsettled *unsettled);
bool unsettled_has(const struct tx *tx, int64_t cell);

/* CELL is judged with all its runs: false if it was not to be.  RET_UNSETTLED may be
 * NULL. */
bool unsettled_remove(struct tx *tx, int64_t cell, struct unsettled *ret_unsettled);

#endif
