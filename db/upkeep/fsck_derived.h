/* fsck's look at rows that follow from runs and have no checksum of their own, but those
 * of cells that db/upkeep/recompute.h sums up: by SQL that says what each must be. */
#ifndef DB_UPKEEP_FSCK_DERIVED_H
#define DB_UPKEEP_FSCK_DERIVED_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"

struct tx;

struct fsck_derived {
    int64_t jobs;            /* counted again from their items and runs … */
    int64_t jobs_differing;  /* … and not as stored */
    int64_t cells_differing; /* rows of cells that are not as stored */
    int64_t others_differing;
};

/* Adds to COUNTS what is found, in one read.  DIFFERS is told in words of each row that
 * is not what it follows from: of which cell it is (0: of none, and then the words stay
 * the same while runs are added); it returns whether that counts. */
enum err_code fsck_derived_check(struct tx *tx,
                                 bool (*differs)(void *arg, int64_t cell,
                                                 const char *line),
                                 void *arg, struct fsck_derived *counts, struct err *err);

#endif
