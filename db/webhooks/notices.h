/* Events that are about the service itself: hosts that were lost, damage of the database.
 */
#ifndef DB_WEBHOOKS_NOTICES_H
#define DB_WEBHOOKS_NOTICES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"

struct tx;

/* HOST is lost because of CAUSE, or back (NULL).  Nothing happens if that was told. */
enum err_code notices_host(struct tx *tx, const char *host, const char *cause,
                           int64_t now_ms, struct err *err);

/* The database is damaged, or that is not known, because of CAUSE; or whole again (NULL).
 */
enum err_code notices_database(struct tx *tx, const char *cause, int64_t now_ms,
                               struct err *err);

/* Hosts that were told to be lost, and not to be back. */
enum err_code notices_each_lost(struct tx *tx, void (*visit)(void *arg, const char *host),
                                void *arg, struct err *err);

/* Whether that the database is damaged was the last that was told of it. */
enum err_code notices_damaged(struct tx *tx, bool *ret_damaged, struct err *err);

#endif
