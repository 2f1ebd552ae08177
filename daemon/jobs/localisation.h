/* Localisations: jobs that look for the place where their runs diverge. */
#ifndef DAEMON_JOBS_LOCALISATION_H
#define DAEMON_JOBS_LOCALISATION_H

#include <stdint.h>

enum localisation_state {
    LOCALISATION_SEARCHING, /* item 0 makes traces */
    LOCALISATION_CAPTURING, /* the place is known; item 1 captures it */
    LOCALISATION_LOCALISED, /* the place is known, and what can be said of it */
    LOCALISATION_NOT_FOUND, /* no pair of runs diverged at a place that explains it */
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

#endif
