/* Which cells fsck found to be what their runs give: it need not sum these up again as
 * long as neither side changed.
 *
 * Triggers count each change of what a cell is the sum of, whoever makes it; a
 * fingerprint covers the cell's own rows.  What follows from other cells, the verdict, is
 * never trusted. */
#ifndef DB_UPKEEP_MARKS_H
#define DB_UPKEEP_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "workloads/instruments/digest.h"

struct tx;

/* After so long a cell is summed up again, although nothing changed: memory and disks
 * forget, and no trigger sees it. */
enum { MARKS_DAYS = 30 };
#define MARKS_MS ((int64_t)MARKS_DAYS * 24 * 3600 * 1000)

/* A cell at one instant: that of the transaction in which it was read. */
struct mark {
    int64_t cell, changes;
    char fingerprint[DIGEST_HEX_SIZE];
};

/* CELL as it is now, and whether it was found right, not before SINCE_MS, as it is. */
enum err_code marks_read(struct tx *tx, int64_t cell, int64_t since_ms,
                         struct mark *ret_mark, bool *ret_verified, struct err *err);

/* Cells were right when MARKS were read.  It does no harm if they changed since. */
enum err_code marks_store(struct tx *tx, const struct mark *marks, int count,
                          int64_t now_ms, struct err *err);

#endif
