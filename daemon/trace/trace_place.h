/* Names of places: where in a computation a probe is.  Pure.
 *
 * By convention (workloads/PROTOCOL.md) "data/…" is what a step is fed with, "rng/…" the
 * state of a generator, "variable/NAME/before" a variable before its update,
 * "optimizer/NAME" a state that goes on from step to step, and "output/NAME" what a whole
 * iteration computed from all its inputs. */
#ifndef DAEMON_TRACE_TRACE_PLACE_H
#define DAEMON_TRACE_TRACE_PLACE_H

#include <stdbool.h>

enum { TRACE_PLACE_MAX = 128 }; /* bytes of a name */

/* Whether PLACE is a name: 1 to TRACE_PLACE_MAX bytes of UTF-8, without control
 * characters, line separators and what turns the direction of writing, so that it can be
 * shown in a terminal as it is. */
bool trace_place_valid(const char *place);

/* Whether PLACE matches GLOB as a whole: '*' is any number of characters, '/' included,
 * '?' is one.  Takes time of at most the product of the lengths. */
bool trace_place_matches(const char *glob, const char *place);

enum trace_role {
    TRACE_ROLE_OTHER,
    TRACE_ROLE_DATA,
    TRACE_ROLE_RNG,
    TRACE_ROLE_VARIABLE, /* before its update */
    TRACE_ROLE_STATE,
    TRACE_ROLE_OUTPUT
};

enum trace_role trace_place_role(const char *place);

#endif
