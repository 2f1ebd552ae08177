/* A trace: what the probes of one run saw, in program order.  Each record names a place
 * and holds the digests of everything that the place read and wrote.  Pure.
 *
 * It is bounded: records beyond the bound are dropped and counted, never an error. */
#ifndef DAEMON_TRACE_TRACE_H
#define DAEMON_TRACE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/trace/trace_place.h"
#include "workloads/instruments/digest.h"

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
    int place_capacity, slot_count; /* from here on private */
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
