/* What a hello says, on record: host and devices as last seen. */
#ifndef DAEMON_FLEET_FLEET_STORE_H
#define DAEMON_FLEET_FLEET_STORE_H

#include <jansson.h>
#include <stdbool.h>

#include "db/store.h"

/* Queues the write; *RET_STORED, which must outlive the store, becomes true once it is
 * durable.  A failure is logged. */
void fleet_store_hello(struct store *store, const char *host, const json_t *hello,
                       bool *ret_stored);

#endif
