/* Checking a database, also while a daemon serves it. */
#ifndef DB_FSCK_H
#define DB_FSCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"

struct fsck_counts {
    int64_t damaged;      /* lines of PRAGMA integrity_check */
    int64_t rows;         /* whose checksums were compared … */
    int64_t rows_damaged; /* … and are not what was stored, except cells, which differ */
    int64_t facts_damaged;   /* of these, of other tables than run */
    int64_t dangling;        /* rows that refer to a missing row, or cases to others than
                                their siblings */
    int64_t cells;           /* compared with their runs … */
    int64_t cells_trusted;   /* … of these, unchanged since that was done last, and only
                                judged again … */
    int64_t cells_differing; /* … and not as stored */
    bool marks_failed;       /* what was verified could not be noted */
    int64_t jobs;            /* counted again from their items … */
    int64_t jobs_differing;  /* … and not as stored */
    int64_t acknowledged;    /* faults that a person knows (db/integrity/accept.h); they
                                are in no other count */
    int64_t traces;          /* unpacked … */
    int64_t traces_damaged;  /* … and found wrong, or not what their runs say */
};

/* What is checked when.  The pages of the file, the references between rows, the sums of
 * jobs and inputs, and traces: each time.  Cells, which take longest: each is judged each
 * time, and summed up from its runs unless that was done within MARKS_DAYS and neither
 * its runs nor its own rows changed since (db/upkeep/marks.h).  So a check that was
 * stopped goes on where it was. */
struct fsck {
    bool full;   /* trust nothing that was verified before */
    bool marks;  /* note what was verified, in the database */
    int readers; /* connections that recompute cells at the same time */
    int64_t now_ms;
    void (*report)(void *arg, const char *line); /* for every fault; one call at a time */
    /* Also told of those that contradict others, and that a person may acknowledge in
     * these words: rows that refer to none, jobs, traces.  NULL: nobody. */
    void (*may_acknowledge)(void *arg, const char *line);
    void (*cell_differs)(void *arg, int64_t cell); /* which lines are of; NULL: nobody */
    void *arg;
};

/* Returns ERR_OK when the check could be made, whatever it found: ret_counts tells.
 * ERR_NOT_FOUND, ERR_CORRUPT (not a database at all) and ERR_NEWER as store_open would;
 * ERR_CONFLICT: store_open has not yet brought it to what this program stores. */
enum err_code fsck_file(const char *path, const struct fsck *fsck,
                        struct fsck_counts *ret_counts, struct err *err);

/* The same, in full and with one reader; it only reads. */
enum err_code fsck_database(const char *path, void (*report)(void *arg, const char *line),
                            void *arg, struct fsck_counts *ret_counts, struct err *err);

/* The same of a database that this process serves, through TX, which nobody else uses
 * (store_background): a table and a few cells at a time, each in a short read.
 * CELL_DIFFERS is told of each cell that is not what its runs give, in addition to the
 * line, RIGHT of each that was summed up and is (the caller stores the mark).  It ends
 * with ERR_TIMEOUT soon after STOP became true. */
struct mark;
struct tx;
struct fsck_served {
    struct tx *tx;
    int64_t now_ms;
    void (*report)(void *arg, const char *line);
    void (*report_acknowledged)(void *arg, const char *line); /* a fault that is known */
    void (*may_acknowledge)(void *arg, const char *line);
    void (*cell_differs)(void *arg, int64_t cell);
    void (*right)(void *arg, const struct mark *mark);
    void *arg;
    atomic_bool *stop;
};
/* The same of COPY, a copy of that database, which takes it no time: FSCK's own
 * connection is not used. */
enum err_code fsck_copy(const char *copy, const struct fsck_served *fsck,
                        struct fsck_counts *ret_counts, struct err *err);

/* Whether nothing at all was found. */
bool fsck_is_whole(const struct fsck_counts *counts);

enum err_code fsck_served(const struct fsck_served *fsck, struct fsck_counts *ret_counts,
                          struct err *err);

#endif
