/* What an agent says on standard error, as lines of this log: so many of them and so much
 * in a while; what is beyond that is counted, and the log says so.  Loop thread only. */
#ifndef DAEMON_LINK_AGENT_LOG_H
#define DAEMON_LINK_AGENT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    AGENT_LOG_LINE_SIZE = 1024,
    AGENT_LOG_WINDOW_MS = 10000,
    AGENT_LOG_LINES = 200, /* in a window */
    AGENT_LOG_BYTES = 64 << 10
};

struct agent_log {
    const char *host; /* borrowed; the rest is zero at first */
    size_t length;
    char line[AGENT_LOG_LINE_SIZE]; /* the one that is not complete; cut if too long */
    char last[AGENT_LOG_LINE_SIZE]; /* the last complete one, without its time */
    int64_t window_ms;              /* monotonic, when the window began */
    int64_t lines, bytes;           /* that were logged in it */
    int64_t left_lines, left_bytes; /* that were not, in it */
};

void agent_log_add(struct agent_log *log, const char *data, size_t length,
                   int64_t now_ms);

/* Called now and then: says what was left out, once the window is over. */
void agent_log_tick(struct agent_log *log, int64_t now_ms);

/* It says no more. */
void agent_log_end(struct agent_log *log, int64_t now_ms);

/* Something was left out in this window. */
bool agent_log_overflows(const struct agent_log *log);

#endif
