/* What an agent says on standard error, line by line, into the daemon's log under the
 * name of its host. */
#ifndef DAEMON_FLEET_LINK_LOG_H
#define DAEMON_FLEET_LINK_LOG_H

#include <stddef.h>

enum { LINK_LOG_LINE_SIZE = 1024 };

struct link_log {
    const char *host; /* borrowed */
    size_t length;
    char line[LINK_LOG_LINE_SIZE]; /* the one that is not complete; cut where too long */
    char last[LINK_LOG_LINE_SIZE]; /* the last complete one */
};

void link_log_init(struct link_log *log, const char *host);
void link_log_add(struct link_log *log, const char *data, size_t length);

/* The last line, without its time; "" if there was none.  Borrowed. */
const char *link_log_last(const struct link_log *log);

/* Logs an incomplete last line. */
void link_log_release(struct link_log *log);

#endif
