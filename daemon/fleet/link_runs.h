/* The runs that an agent was told to do and has not told the end of: what it may say
 * about which run, and when. */
#ifndef DAEMON_FLEET_LINK_RUNS_H
#define DAEMON_FLEET_LINK_RUNS_H

#include <jansson.h>

#include "daemon/base/err.h"

struct link_events;
struct link_runs_entry;

struct link_runs {
    struct link_runs_entry *entries;
    int count, capacity;
};

void link_runs_add(struct link_runs *runs, const char *id);

/* Checks EVENT, which is called NAME, and passes it on to EVENTS.  Event types that
 * nobody knows are ignored.  ERR_PROTOCOL: a field is missing or malformed, the run is
 * not one of these, or the event is not due. */
enum err_code link_runs_event(struct link_runs *runs, const char *name,
                              const json_t *event, const struct link_events *events,
                              void *arg, struct err *err);

void link_runs_release(struct link_runs *runs);

#endif
