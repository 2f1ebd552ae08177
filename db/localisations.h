/* Localisations: jobs that look for the place where their runs part.  What their runs
 * show is read by daemon/localise.h, which also decides; here is what is kept. */
#ifndef DB_LOCALISATIONS_H
#define DB_LOCALISATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/base/id.h"

struct tx;

enum localisation_state {
    LOCALISATION_SEARCHING, /* item 0 makes traces */
    LOCALISATION_CAPTURING, /* the place is known; item 1 captures it */
    LOCALISATION_LOCALISED, /* the place is known, and what can be said of it */
    LOCALISATION_NOT_FOUND, /* no pair of runs parted at a place that explains it */
    LOCALISATION_FAILED     /* the runs left nothing to look at */
};
const char *localisation_state_name(enum localisation_state state);

enum { LOCALISATION_REASON_SIZE = 512 };

/* The items of the job. */
enum { LOCALISATION_SEARCH = 0, LOCALISATION_CAPTURE = 1, LOCALISATION_ITEMS = 2 };

struct localisation {
    enum localisation_state state;
    int runs_min; /* at least so many before a place counts as the earliest */
    char reason[LOCALISATION_REASON_SIZE]; /* of the state; "" while searching */
    int64_t ended_ms;                      /* 0: not yet */
    char *search, *difference; /* JSON objects, or NULL; freed by localisation_release */
};

void localisation_release(struct localisation *localisation);

/* Job NUMBER is one.  Private to db/: jobs_insert calls it. */
enum err_code localisations_insert(struct tx *tx, int64_t number, int runs_min,
                                   struct err *err);

/* ERR_NOT_FOUND: there is no such job, or it localises nothing. */
enum err_code localisations_get(struct tx *tx, const char *job,
                                struct localisation *ret_localisation, struct err *err);

/* The completed runs of the job's ITEM with ids after AFTER ("": all), oldest first, at
 * most LIMIT. */
enum err_code localisations_each_run(struct tx *tx, const char *job, int item,
                                     const char *after, int limit,
                                     void (*visit)(void *arg, const char *run), void *arg,
                                     struct err *err);

/* With how many different digests the first iterations of these runs ended. */
enum err_code localisations_count_digests(struct tx *tx, const char *job, int item,
                                          int64_t *ret_digests, struct err *err);

/* The place is known: item 0 ends, item 1 is to be run with OPTIONS.  ERR_CONFLICT, as of
 * the next one: the job is not open any more. */
struct localisations_found {
    const char *job, *reason, *search;
    const char *options; /* of item 1, as in struct job_item */
    int64_t now_ms;
};
enum err_code localisations_capture(struct tx *tx,
                                    const struct localisations_found *found,
                                    struct err *err);

/* It has ended in STATE, and with it the job. */
struct localisations_end {
    const char *job, *reason;
    enum localisation_state state;
    const char *search;     /* NULL: as it is */
    const char *difference; /* NULL: none */
    const char *runs[2];    /* whose tensors are kept; "": none */
    int64_t now_ms;
};
enum err_code localisations_conclude(struct tx *tx, const struct localisations_end *end,
                                     struct err *err);

#endif
