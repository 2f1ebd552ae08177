/* One look at a localisation: reads the runs that finished since the last one, and
 * decides what is next.  Runs on a reader thread of the store; between looks the state
 * belongs to the loop.
 *
 * The state is a cache: it can be thrown away at any time, and the next looks make it
 * again from the traces that are stored.  The decision depends on these alone. */
#ifndef DAEMON_LOCALISE_LOCALISE_LOOK_H
#define DAEMON_LOCALISE_LOCALISE_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/base/id.h"
#include "daemon/trace/divergence.h"
#include "db/jobs.h"
#include "db/localisations.h"

struct tx;

/* A run that was asked to capture, and its record of the place. */
struct look_capture {
    char run[ID_SIZE];
    bool there;            /* it has one */
    struct digest in, out; /* all that it reads (trace_reads.h), and what it wrote */
};

/* What was seen so far; zero-initialised is nothing. */
struct look_state {
    struct divergence *divergence; /* of the runs that search */
    char (*runs)[ID_SIZE];         /* these, in the order in which they were fed */
    int run_count;
    struct look_capture *captures;
    int capture_count;
    char last[LOCALISATION_ITEMS][ID_SIZE]; /* seen of each item; "": none */
};

void look_state_release(struct look_state *state);

enum look_next {
    LOOK_AGAIN,   /* there is more to read */
    LOOK_GO_ON,   /* `item` needs another run */
    LOOK_CAPTURE, /* the place is known: localisations_capture */
    LOOK_CONCLUDE /* localisations_conclude */
};

/* What a look comes to; released with look_release. */
struct look {
    enum look_next next;
    int item;                      /* LOOK_GO_ON */
    enum localisation_state state; /* LOOK_CONCLUDE, as the next ones */
    char runs[2][ID_SIZE];         /* that are compared; "": none */
    char *difference;              /* JSON, or NULL */
    char *search;                  /* JSON, or NULL: as it is stored */
    char reason[LOCALISATION_REASON_SIZE];
    struct run_options options; /* LOOK_CAPTURE */
};

/* Looks at JOB.  ERR_NOT_FOUND: it localises nothing. */
enum err_code look_at(struct tx *tx, const char *job, struct look_state *state,
                      struct look *ret_look, struct err *err);

void look_release(struct look *look);

#endif
