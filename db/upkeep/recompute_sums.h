/* What the runs of one cell add up to, by SQL of its own: the sums of
 * db/upkeep/recompute.h. Private to it. */
#ifndef DB_UPKEEP_RECOMPUTE_SUMS_H
#define DB_UPKEEP_RECOMPUTE_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "db/cells_rows.h"

struct recompute {
    struct tx *tx;
    void (*differs)(void *arg, int64_t cell, const char *what); /* told of each */
    void *arg;
    struct cell_row stored;
    struct cell_row fresh;
    bool differing;
};

/* WHAT is stored as STORED, and the runs give FRESH: told if that is not the same. */
void recompute_report(struct recompute *r, const char *what, int64_t stored,
                      int64_t fresh);
void recompute_report_text(struct recompute *r, const char *what, const char *stored,
                           const char *fresh);

/* Sums up the runs of r->stored in temp.seen: in r->fresh what is in its row, and told of
 * what is in rows of its own and is not as stored. */
enum err_code recompute_sum_up(struct recompute *r, struct err *err);

#endif
