/* The second opinion on cells, a few at a time (cells_recompute of db/cells.h does all).
 */
#ifndef DB_UPKEEP_RECOMPUTE_H
#define DB_UPKEEP_RECOMPUTE_H

#include <stdatomic.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "db/upkeep/marks.h"

struct tx;

struct recompute_how {
    /* Cells that were found right, not before this, and did not change are judged again,
     * but not summed up; INT64_MAX: none. */
    int64_t trusted_since_ms;
    void (*differs)(void *arg, int64_t cell, const char *what); /* one line */
    void (*right)(void *right_arg, const struct mark *mark); /* summed up, and right; or
                                                                NULL */
    void *arg, *right_arg;
    atomic_bool *stop;    /* or NULL; it is asked between cells */
    int64_t runs_at_once; /* whose facts are copied together; 0: 20,000 */
};

struct recomputed {
    int64_t compared;  /* cells that were looked at … */
    int64_t trusted;   /* … of these, without summing up … */
    int64_t differing; /* … and that are not as stored */
};

/* Makes the tables that recompute_cells needs, outside of a transaction; without, it
 * makes them itself, each time that one was rolled back. */
enum err_code recompute_prepare(struct tx *tx, struct err *err);

/* Adds to COUNTS what is found of the COUNT cells IDS (ascending; those that are gone, or
 * whose case or environment is, are passed over), in the transaction that TX is in.
 * ERR_TIMEOUT after STOP became true. */
enum err_code recompute_cells(struct tx *tx, const struct recompute_how *how,
                              const int64_t *ids, int count, struct recomputed *counts,
                              struct err *err);

/* The ids of all cells, ascending; the caller frees them. */
enum err_code recompute_list(struct tx *tx, int64_t **ret_ids, int *ret_count,
                             struct err *err);

#endif
