/* Webhooks in the database. */
#ifndef DB_WEBHOOKS_WEBHOOKS_H
#define DB_WEBHOOKS_WEBHOOKS_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/webhooks/webhook.h"

struct tx;

/* Stores WEBHOOK, whose id is new.  It is told of what happens from here on.
 * ERR_CONFLICT: another has the name; ERR_BUSY: there are WEBHOOKS_MAX already. */
enum err_code webhooks_insert(struct tx *tx, const struct webhook *webhook,
                              struct err *err);

/* Makes those of the configuration COUNT LIST, which have no ids yet: new ones are told
 * of what happens from here on, others keep what waits for them, and begin anew where
 * the URL is another one, those that are not
 * listed any more are deleted.  One of the same name that was made by the API becomes the
 * configuration's.  RET_DROPPED: deliveries that waited for those that were deleted. */
enum err_code webhooks_configure(struct tx *tx, const struct webhook *list, int count,
                                 int64_t now_ms, int64_t *ret_dropped, struct err *err);

/* With all deliveries.  ERR_NOT_FOUND; ERR_CONFLICT: the configuration has it. */
enum err_code webhooks_delete(struct tx *tx, const char *id, struct err *err);

/* Paused, what happens waits.  Resumed, it is no longer disabled either, and what waits
 * is due at once.  ERR_NOT_FOUND. */
enum err_code webhooks_pause(struct tx *tx, const char *id, bool paused, int64_t now_ms,
                             struct err *err);

/* ERR_NOT_FOUND. */
enum err_code webhooks_get(struct tx *tx, const char *id, struct webhook *ret_webhook,
                           struct err *err);

/* All, by name: into LIST.  Unless COUNTED, without `waiting` and `dead`. */
enum err_code webhooks_list(struct tx *tx, bool counted,
                            struct webhook list[WEBHOOKS_MAX], int *ret_count,
                            struct err *err);

/* Sums over all of them, for a scrape. */
struct webhook_figures {
    int64_t webhooks, failing, disabled, waiting, dead, delivered, failures, dropped;
};
enum err_code webhooks_figures(struct tx *tx, struct webhook_figures *ret_figures,
                               struct err *err);

#endif
