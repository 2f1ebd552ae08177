/* What runs recorded of their outputs ("output/…", daemon/trace/trace.h) beside the
 * digest that they report: where the digests are equal, so are the outputs, or the digest
 * is of less than what is reported.  Pure. */
#ifndef DAEMON_TRACE_OUTPUTS_H
#define DAEMON_TRACE_OUTPUTS_H

#include "daemon/trace/trace.h"

/* Of a run whose iterations have one digest: a place whose output differs between its
 * first recorded iteration and another; NULL: none.  What is not recorded alike is not
 * compared. */
const char *trace_outputs_vary(const struct trace *trace);

/* Likewise between the first recorded iterations of two such runs with the same digest.
 */
const char *trace_outputs_differ(const struct trace *a, const struct trace *b);

#endif
