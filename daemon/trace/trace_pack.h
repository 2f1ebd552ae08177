/* A trace as bytes, for storing it.
 *
 * Iterations, steps and places are predicted from where the place before was met last, so
 * a regular trace says them once.  A digest that was met before, in what some place read
 * or wrote, is a distance back; new digests stand as they are, since nothing can compress
 * them.  The distances and predictions go through zlib.  Equal traces are equal bytes.
 *
 *     8 bytes   "rptrace1"
 *     3 x 4     little-endian: length of the columns, of the columns compressed, and how
 *               many new digests there are
 *     …         the columns, compressed
 *     n x 16    the new digests, little-endian, hi first
 *     16        the digest of all bytes before
 *
 * Measured: 1,000 steps of 60 places, in which every place but the data's reads what
 * another wrote and writes something new, take 960,680 bytes: 16 for each of the 60,000
 * new digests, and 680 for all the rest (48 bytes a record before packing). */
#ifndef DAEMON_TRACE_TRACE_PACK_H
#define DAEMON_TRACE_TRACE_PACK_H

#include <stddef.h>

#include "daemon/base/buf.h"
#include "daemon/base/err.h"
#include "daemon/trace/trace.h"

#define TRACE_MAGIC "rptrace1"

/* Appends the bytes of TRACE. */
void trace_pack(const struct trace *trace, struct buf *buf);

/* Reads what trace_pack writes.  ERR_CORRUPT for all other bytes, whatever they are:
 * truncated, changed, over the bounds of a trace, or with names that are none; at most
 * tens of megabytes are allocated for them.  ret_trace: caller releases; empty then. */
enum err_code trace_unpack(const void *bytes, size_t length, struct trace *ret_trace,
                           struct err *err);

/* The digest at the end of packed bytes; zero where they are too short to have one. */
struct digest trace_packed_digest(const void *bytes, size_t length);

#endif
