/* Old runs that are alike become one row: a summary (db/upkeep/summaries.h).
 *
 * Whatever is said of a cell, a job or the inputs of a case stays what it was, whatever
 * is stored or decided later, and fsck verifies it from runs and summaries.  What is lost
 * of a run is what nobody concludes anything from: its process, its log, its sensors, and
 * its times but for their sum, extremes and histogram.
 *
 * A run is folded if it completed with one digest in all its iterations, ended longer ago
 * than `days`, is not of the newest `runs` of its cell, and its job is over.  It stays
 * where it
 * - departs: its digest is not the most frequent one of a cell that is no control (of a
 *   control, which is to vary, each digest keeps its first and its last run);
 * - is the first or the last of those that are seen together with the same digest,
 * inputs, device, options and circumstances, so each keeps its first;
 * - was asked to check itself, has a trace or a captured tensor, or looked for a place;
 * - is referred to: by a digest of its cell, a history, the inputs of its case or the
 *   environment of its device. */
#ifndef DB_UPKEEP_RETENTION_H
#define DB_UPKEEP_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/base/id.h"

struct tx;

struct retention {
    int days;    /* 0: nothing is ever folded */
    int runs;    /* of each cell that are never folded, however old */
    int at_once; /* runs that one slice looks at, at least 3 */
};

/* How far a pass has come: it begins as zero, and may begin anew at any time. */
struct retention_place {
    int64_t old_ms;    /* what ended before is old; 0: the pass has not begun */
    int64_t cell;      /* done up to here … */
    char run[ID_SIZE]; /* … and, in the next cell, up to this run */
    bool finished;     /* all cells were looked at */
    int64_t looked_at, folded, summaries; /* so far */
};

/* One slice, in the transaction that TX is in: goes on from PLACE, and stores where it
 * came to.  NOW_MS is the time by which runs are old, or the end of the latest run if
 * that is earlier: a clock that is ahead ages nothing. */
enum err_code retention_fold(struct tx *tx, const struct retention *retention,
                             int64_t now_ms, struct retention_place *place,
                             struct err *err);

#endif
