/* JSON lines, written by hand: the worker needs no JSON library.
 *
 *     emit_begin(e);
 *     emit_string(e, "event", "iteration");
 *     emit_array(e, "list");
 *     emit_int(e, NULL, 1);           // no key inside an array
 *     emit_array_end(e);
 *     error = emit_end(e);            // {"event":"iteration","list":[1]}
 *
 * A line is built in memory and leaves in one write(2).  The caller keeps keys unique.
 *
 * Not daemon/base/json_out: a worker must say how its run ended also when there is no
 * memory left, so a line has its place from the start and an end; and the bytes of a line
 * are stored (control characters as \u00XX, a byte that is not UTF-8 as \ufffd). */
#ifndef WORKLOADS_WORKER_EMIT_H
#define WORKLOADS_WORKER_EMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workloads/instruments/digest.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { EMIT_LINE_MAX = 64 * 1024 }; /* bytes of a line, its newline included */

struct emit {
    int fd; /* borrowed */
    size_t length;
    bool too_long; /* the line outgrew EMIT_LINE_MAX and will not be written */
    char line[EMIT_LINE_MAX];
};

void emit_init(struct emit *emit, int fd);

void emit_begin(struct emit *emit);

/* Ends the line and writes it.  Returns 0 or an errno value: EMSGSIZE when the line is
 * too long, EPIPE when nobody reads (SIGPIPE must be ignored), or what write(2) says. */
int emit_end(struct emit *emit);

/* The same; ends the process with STATUS_OUTPUT, after a line to stderr, when it fails.
 */
void emit_send(struct emit *emit);

/* VALUE is UTF-8; each byte that is not becomes U+FFFD.  NULL is written as null. */
void emit_string(struct emit *emit, const char *key, const char *value);
void emit_int(struct emit *emit, const char *key, int64_t value);
void emit_bool(struct emit *emit, const char *key, bool value);
void emit_null(struct emit *emit, const char *key);

/* A number with DECIMALS decimals; null when VALUE is not finite. */
void emit_fixed(struct emit *emit, const char *key, double value, int decimals);

/* A number with 17 significant digits, which reads back as VALUE; the strings "nan",
 * "inf" and "-inf" where JSON has no number. */
void emit_double(struct emit *emit, const char *key, double value);

/* The 16 hex digits of the binary64 bits of VALUE, as a string. */
void emit_bits(struct emit *emit, const char *key, double value);
void emit_digest(struct emit *emit, const char *key, struct digest digest);

/* COUNT bytes as base64 (RFC 4648, with padding). */
void emit_base64(struct emit *emit, const char *key, const void *bytes, size_t count);

void emit_object(struct emit *emit, const char *key);
void emit_object_end(struct emit *emit);
void emit_array(struct emit *emit, const char *key);
void emit_array_end(struct emit *emit);

#ifdef __cplusplus
}
#endif

#endif
