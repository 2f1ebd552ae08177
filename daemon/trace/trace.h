/* A trace: what the probes of one run saw, in program order.  Each record names a place
 * and holds the digests of everything that the place read and wrote.  Pure.
 *
 * It is bounded: records beyond the bound are dropped and counted, never an error.
 *
 * By convention (workloads/PROTOCOL.md) a place is named after its contents: "data/…" is
 * what a step is fed with, "rng/…" the state of a generator, "variable/NAME/before" a
 * variable before its update, "optimizer/NAME" a state that goes on from step to step,
 * and "output/NAME" what a whole iteration computed from all its inputs. */
#ifndef DAEMON_TRACE_TRACE_H
#define DAEMON_TRACE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "workloads/instruments/digest.h"

/* Names of places. */
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

enum { TRACE_RECORDS_MAX = 262144, TRACE_PLACES_MAX = 16384 };

struct trace_record {
    int32_t iteration; /* >= 0 */
    int32_t place;     /* index in `places` */
    int64_t step;      /* >= 0 */
    struct digest in, out;
};

/* Zero-initialised is empty. */
struct trace {
    char **places; /* distinct names, in order of their first record */
    struct trace_record *records;
    int64_t count, dropped;
    int place_count;
    int slot_count; /* from here on private */
    int64_t capacity;
    int32_t *slots; /* hash table of the names: index + 1, 0 is empty */
};

void trace_init(struct trace *trace);
void trace_release(struct trace *trace);

/* Adds a record.  PLACE is copied, and valid (trace_place_valid); ITERATION and STEP are
 * not negative.  False: there are TRACE_RECORDS_MAX records, or TRACE_PLACES_MAX places
 * and this is another, so it was dropped; everything after a dropped record is dropped
 * too: what is kept is the beginning of the trace, without holes. */
bool trace_add(struct trace *trace, int32_t iteration, int64_t step, const char *place,
               struct digest in, struct digest out);

/* The index of PLACE, which is copied and added where it is new; -1 where there are
 * TRACE_PLACES_MAX others. */
int trace_add_place(struct trace *trace, const char *place);

/* The index of PLACE, or -1. */
int trace_find_place(const struct trace *trace, const char *place);

/* The name of the place of the record at POSITION. */
const char *trace_place_at(const struct trace *trace, int64_t position);

/* How many earlier records have the iteration, step and place of the one at POSITION: 0
 * for the first of them. */
int64_t trace_occurrence(const struct trace *trace, int64_t position);

/* Whether a record says of its place that it reads nothing (`in` is 32 zeros), or that
 * what it reads was not recorded. */
bool trace_reads_nothing(const struct trace_record *record);

#endif
