/* Deliveries: what waits for a webhook, what was delivered, what was given up. */
#ifndef DB_WEBHOOKS_DELIVERIES_H
#define DB_WEBHOOKS_DELIVERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/webhooks/webhook.h"

struct tx;

/* Adds EVENT to what waits for the webhook of number WEBHOOK, unless it has the id
 * already. RET_DELIVERY: its number; 0: nothing was added. */
enum err_code deliveries_add(struct tx *tx, int64_t webhook,
                             const struct cloud_event *event, const char *body,
                             int64_t now_ms, int64_t *ret_delivery, struct err *err);

/* What there is too much of: the oldest that wait become dead letters, the oldest dead
 * letters are dropped and counted, the oldest that were delivered are forgotten. */
enum err_code deliveries_bound(struct tx *tx, int64_t webhook, int64_t now_ms,
                               struct err *err);

/* The delivery of webhook ID that has been due for the longest time, if one is: ROW,
 * whose body the caller frees.  Else ret_row->number is 0, and RET_NEXT_MS says when the
 * next one will be (0: none waits). */
enum err_code deliveries_due(struct tx *tx, const char *id, int64_t now_ms,
                             struct delivery_row *ret_row, char **ret_body,
                             int64_t *ret_next_ms, struct err *err);

/* How a try ended. */
struct delivery_try {
    char webhook[ID_SIZE];
    int64_t delivery;
    int64_t now_ms;
    int status;             /* 0: there was no answer */
    int64_t retry_after_ms; /* what it asked for; 0: nothing */
    int failures;           /* in a row since the start, if this is one: with it */
    int64_t hold_ms;        /* for which its receiver is left alone */
    uint64_t random;        /* for the wait */
    char cause[WEBHOOK_CAUSE_SIZE]; /* why it failed; "" */
    /* What became of it. */
    bool dead, disabled;
    int64_t given_up; /* others that became dead letters with it */
};

/* Stores how a try ended: the delivery is over, or waits.  Nothing happens if it is no
 * longer there. */
enum err_code deliveries_tried(struct tx *tx, struct delivery_try *tried,
                               struct err *err);

/* Those of webhook ID, newest first, numbers below BEFORE (0: from the newest), at most
 * LIMIT; only those of STATE, unless that is DELIVERY_STATES.  ERR_NOT_FOUND. */
enum err_code deliveries_each(struct tx *tx, const char *id, enum delivery_state state,
                              int64_t before, int limit,
                              void (*visit)(void *arg, const struct delivery_row *row),
                              void *arg, struct err *err);

/* Those of the webhook of number WEBHOOK that are over, and of what happened from
 * SINCE_MS up to UNTIL_MS, wait once more. */
enum err_code deliveries_again(struct tx *tx, int64_t webhook, int64_t since_ms,
                               int64_t until_ms, int64_t now_ms, int64_t *ret_count,
                               struct err *err);

/* The dead letters of webhook ID, or the one delivery DELIVERY (0: all dead letters),
 * wait once more.  ERR_NOT_FOUND. */
enum err_code deliveries_replay(struct tx *tx, const char *id, int64_t delivery,
                                int64_t now_ms, int64_t *ret_count, struct err *err);

/* What waits for the webhook of number WEBHOOK, and was not tried yet, is due, what
 * happened first first; if FAILED, what was tried, too. */
enum err_code deliveries_in_order(struct tx *tx, int64_t webhook, bool failed,
                                  int64_t now_ms, struct err *err);

/* After a clock that was ahead: nothing waits longer than it can. */
enum err_code deliveries_settle(struct tx *tx, int64_t now_ms, struct err *err);

#endif
