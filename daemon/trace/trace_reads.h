/* What the records of a trace read: what they say (`in`) and, of places whose names say
 * so by convention (daemon/trace/trace.h), what they read in addition to that.  Pure.
 *
 * An "output/…", what a whole iteration computed, reads everything before it in the
 * iteration.  An "optimizer/…", a state that goes on from step to step, reads its own
 * state of the step before.  A record that says it reads nothing is taken to read
 * everything before it, unless nothing in the computation writes it: data and generators
 * go on from their own state, and a variable begins with its first record.
 *
 * Take two traces with the same places up to a position.  If the records there read the
 * same but wrote something else, the difference begins there. */
#ifndef DAEMON_TRACE_TRACE_READS_H
#define DAEMON_TRACE_TRACE_READS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/trace/trace.h"

/* Private. */
struct trace_reads_place {
    enum trace_role role;
    bool seen;
    struct digest before; /* its records so far */
};

/* Goes through a trace from its first record to its last. */
struct trace_reads {
    const struct trace *trace;
    struct trace_reads_place *places;
    struct digest before, iteration; /* all records so far; those of the iteration */
    int64_t at;
};

/* TRACE is borrowed until the release. */
void trace_reads_init(struct trace_reads *reads, const struct trace *trace);
void trace_reads_release(struct trace_reads *reads);

/* One digest for all that the next record reads; there is one. */
struct digest trace_reads_next(struct trace_reads *reads);

/* The same for the record at POSITION alone; there is one. */
struct digest trace_reads_at(const struct trace *trace, int64_t position);

#endif
