/* From events (db/events.h) to deliveries.
 *
 * What happens is an event in the transaction in which it happens.  Later, in a
 * transaction of its own, what webhooks want of it becomes a delivery of each, and the
 * cursor moves on behind it.  No event is trimmed that the cursor has not passed: so
 * nothing is lost, whenever the service ends. */
#ifndef DB_WEBHOOKS_OUTBOX_H
#define DB_WEBHOOKS_OUTBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"

struct tx;

/* Whether there may be something for webhooks behind event AFTER, or the cursor if that
 * is further.  RET_LAST: the newest event that was looked at. */
enum err_code outbox_look(struct tx *tx, int64_t after, bool *ret_found,
                          int64_t *ret_last, struct err *err);

/* Makes the deliveries of the next events, and moves the cursor.  RET_MORE: there may be
 * more. */
enum err_code outbox_take(struct tx *tx, int64_t now_ms, bool *ret_more, struct err *err);

/* The same to the end. */
enum err_code outbox_take_all(struct tx *tx, int64_t now_ms, struct err *err);

/* Likewise, if there is a cursor: before events are trimmed. */
enum err_code outbox_advance(struct tx *tx, int64_t now_ms, struct err *err);

/* The cursor goes with the last webhook: nothing is kept for nobody. */
enum err_code outbox_forget(struct tx *tx, struct err *err);

/* "reprod://HOST:PORT": said in what is made from here on.  Before the store is used by
 * several threads. */
void outbox_set_source(const char *source);

/* Makes deliveries of webhook ID anew of what happened from SINCE_MS up to UNTIL_MS, as
 * far as it is still stored, with the ids that they had.  RET_COUNT.  ERR_NOT_FOUND. */
enum err_code outbox_replay(struct tx *tx, const char *id, int64_t since_ms,
                            int64_t until_ms, int64_t now_ms, int64_t *ret_count,
                            struct err *err);

/* A delivery of type webhook.test to webhook ID.  ERR_NOT_FOUND. */
enum err_code outbox_test(struct tx *tx, const char *id, int64_t now_ms,
                          int64_t *ret_delivery, struct err *err);

#endif
