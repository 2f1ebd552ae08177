/* The last bytes of a log. */
#ifndef DAEMON_AGENT_LOG_TAIL_H
#define DAEMON_AGENT_LOG_TAIL_H

#include <stddef.h>
#include <stdint.h>

enum { LOG_TAIL_SIZE = 8192 };

/* Zero-initialised: empty. */
struct log_tail {
    int64_t written; /* bytes ever added */
    char ring[LOG_TAIL_SIZE];
};

void log_tail_add(struct log_tail *tail, const char *data, size_t length);

/* Copies what is kept, oldest first; returns how many bytes. */
size_t log_tail_copy(const struct log_tail *tail, char ret_text[LOG_TAIL_SIZE]);

#endif
