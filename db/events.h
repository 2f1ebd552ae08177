/* The outbox: what happened, in order, written in the transaction that made it happen.
 * Server-sent events and webhooks are read from it. */
#ifndef DB_EVENTS_H
#define DB_EVENTS_H

#include <stdint.h>

#include "daemon/base/err.h"

struct tx;

struct event {
    int64_t id; /* grows, never reused */
    int64_t at_ms;
    const char *kind; /* "job", "run", "cell"; borrowed for the call */
    const char *data; /* JSON object; borrowed for the call */
};

/* Events with id > AFTER, oldest first, at most LIMIT. */
enum err_code events_each(struct tx *tx, int64_t after, int limit,
                          void (*visit)(void *arg, const struct event *event), void *arg,
                          struct err *err);

/* The id of the newest event; 0 if there is none. */
enum err_code events_last(struct tx *tx, int64_t *ret_id, struct err *err);

/* Keeps the newest KEEP events, and always the newest one, so that no id is used twice,
 * and what webhooks have not taken yet (db/webhooks/outbox.h). */
enum err_code events_trim(struct tx *tx, int64_t keep, struct err *err);

#endif
