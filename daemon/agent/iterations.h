/* Consecutive iterations of a run that show the same become one event: a service of many
 * hosts reads fewer lines (workloads/PROTOCOL.md, "Agent and daemon").
 *
 * Only what nobody could object to alone is held back: iterations with the members that
 * the protocol names, and no others.  Pure. */
#ifndef DAEMON_AGENT_ITERATIONS_H
#define DAEMON_AGENT_ITERATIONS_H

#include <jansson.h>
#include <stdbool.h>

enum { ITERATIONS_HELD_MAX = 256 }; /* in one event */

/* All zero: none are held. */
struct iterations {
    json_t *first; /* as its worker wrote it */
    json_t *ms;    /* of all, as they were written */
};

/* Takes over DATA, an event of a worker, if it is an iteration and either the first to be
 * held or the next of those that are, and alike.  False: iterations_take comes first, or
 * it cannot be held at all. */
bool iterations_hold(struct iterations *held, json_t *data);

/* What is held, as one event of RUN; NULL: nothing is.  Then nothing is held. */
json_t *iterations_take(struct iterations *held, const char *run);

#endif
