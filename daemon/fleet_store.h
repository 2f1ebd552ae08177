/* What a hello says, on record: host and devices as last seen. */
#ifndef DAEMON_FLEET_STORE_H
#define DAEMON_FLEET_STORE_H

#include <jansson.h>

#include "db/store.h"

/* Queues the write; a failure is logged. */
void fleet_store_hello(struct store *store, const char *host, const json_t *hello);

#endif
