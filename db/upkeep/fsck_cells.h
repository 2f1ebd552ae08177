/* fsck's longest part: cells compared with their runs, by one connection or by several.
 */
#ifndef DB_UPKEEP_FSCK_CELLS_H
#define DB_UPKEEP_FSCK_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "db/upkeep/recompute.h"

struct tx;

/* A command may take more memory than a service. */
enum fsck_cache { FSCK_CACHE_SMALL, FSCK_CACHE_LARGE };

/* Sets up a connection, which is in no transaction, for long checks. */
enum err_code fsck_cells_prepare(struct tx *tx, enum fsck_cache cache, struct err *err);

/* All cells, a few in each read. */
enum err_code fsck_cells_one_by_one(struct tx *tx, const struct recompute_how *how,
                                    struct recomputed *counts, struct err *err);

/* All cells of PATH by TX, and by further connections beside it on threads of their own,
 * READERS of them together.  HOW's functions are called one at a time.  Which cells are
 * right is stored through MARKS, a connection that can write, or NULL; marks_failed says
 * that this did not work, and then nothing more is stored. */
struct fsck_cells {
    const char *path;
    int64_t busy_timeout_ms, now_ms;
    int readers;
    struct tx *marks;
    struct recompute_how how; /* without `right` */
    struct recomputed counts; /* found */
    bool marks_failed;
};
enum err_code fsck_cells_beside(struct fsck_cells *cells, struct tx *tx, struct err *err);

#endif
