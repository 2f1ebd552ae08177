/* The last bytes of a log: a ring of fixed size that also counts what it forgot. */
#ifndef DAEMON_AGENT_TAIL_H
#define DAEMON_AGENT_TAIL_H

#include <stddef.h>
#include <stdint.h>

enum { TAIL_SIZE = 8192 };

struct tail {
    int64_t written; /* bytes ever added */
    char ring[TAIL_SIZE];
};

void tail_add(struct tail *tail, const char *data, size_t length);

/* Copies what is kept, oldest first; returns how many bytes. */
size_t tail_copy(const struct tail *tail, char ret_text[TAIL_SIZE]);

#endif
