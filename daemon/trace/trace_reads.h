/* What the records of a trace read, so that two of them can be told to have read the
 * same: what they say (`in`) and, of places whose names say that by convention
 * (daemon/trace/trace.h), what they read beside that.  Pure.
 *
 * What a whole iteration computed ("output/…") reads everything before it in the
 * iteration; a state that goes on from step to step ("optimizer/…") reads itself as it
 * was.  A record that says it reads nothing reads everything before it, but for those
 * that nothing in the computation writes: data and generators go on from what they were,
 * and the first record of a variable is where it comes from.
 *
 * So of two records that stand at the same position of traces with the same places up to
 * there, and that read the same but wrote something else, the difference begins here. */
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
