/* The wire: lines of JSON between daemon and agent, and between worker and agent
 * (workloads/PROTOCOL.md).  This part is pure: bytes to lines, lines to objects.  What
 * reads and writes descriptors is daemon/process/stream.h. */
#ifndef DAEMON_PROCESS_WIRE_H
#define DAEMON_PROCESS_WIRE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/buf.h"
#include "daemon/base/err.h"

enum {
    WIRE_VERSION = 1,
    WIRE_LINE_MAX = 65536, /* of a worker or a command, newline excluded */
    WIRE_AGENT_LINE_MAX = 4 * 1024 * 1024, /* of an agent: hello holds whole catalogues */
    WIRE_DEPTH_MAX = 32                    /* of nested objects and arrays */
};

/* Splits bytes, as they come, into lines. */
struct wire_lines {
    struct buf partial; /* the beginning of the line that is not complete yet */
    size_t max;
    int64_t count; /* lines completed so far: the number of the line being visited */
};

/* One line, newline excluded, not NUL-terminated; borrowed for the call.  Non-zero ends
 * the feeding. */
typedef int wire_line_fn(void *arg, const char *text, size_t length);

/* MAX is the longest line that is let through, in bytes. */
void wire_lines_init(struct wire_lines *lines, size_t max);

/* Visits every line that DATA completes.  Returns 0; ERR_TOO_LARGE as soon as a line,
 * complete or not, is longer than MAX; or what VISIT returned, if not 0.  After anything
 * but 0, LINES is fit for wire_lines_release only. */
int wire_lines_feed(struct wire_lines *lines, const char *data, size_t length,
                    wire_line_fn *visit, void *arg);

/* Bytes behind the last newline. */
size_t wire_lines_rest(const struct wire_lines *lines);

void wire_lines_release(struct wire_lines *lines);

/* One line as an object: UTF-8, no key twice in an object, at most WIRE_DEPTH_MAX deep,
 * nothing behind it.  NULL with ERR_PROTOCOL otherwise ("not UTF-8", "not JSON", …; the
 * text never quotes the line).  Caller frees with json_decref. */
json_t *wire_parse(const char *text, size_t length, struct err *err);

/* TEXT as a JSON string, whatever bytes it holds: what is not UTF-8, and NUL, becomes
 * U+FFFD.  Caller frees with json_decref; never NULL. */
json_t *wire_string(const char *text, size_t length);

/* Makes TEXT well-formed UTF-8 in place ('?' for each byte that is not): for what was cut
 * to a length. */
void wire_clean(char *text);

#endif
