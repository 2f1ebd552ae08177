/* A webhook: who is told of what happens, and how far that is.  A delivery: one event on
 * its way to one webhook.  Pure. */
#ifndef DAEMON_WEBHOOKS_WEBHOOK_H
#define DAEMON_WEBHOOKS_WEBHOOK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/base/id.h"
#include "daemon/base/json_in.h"
#include "daemon/webhooks/cloud_event.h"
#include "daemon/webhooks/sign.h"
#include "daemon/webhooks/types.h"
#include "daemon/webhooks/url.h"

enum {
    WEBHOOKS_MAX = 32,
    WEBHOOK_NAME_SIZE = 64,
    WEBHOOK_CAUSE_SIZE = 256,
    WEBHOOK_RETRY_MS = 1000,    /* after the first failure, unless it says otherwise */
    WEBHOOK_TIMEOUT_MS = 15000, /* of one try, likewise */
    /* Of each webhook.  Of more that wait, the oldest become dead letters; of more dead
     * letters, the oldest are dropped, and counted. */
    WEBHOOK_WAITING_MAX = 10000,
    WEBHOOK_DEAD_MAX = 1000,
    WEBHOOK_DELIVERED_KEPT = 100
};

struct webhook {
    char id[ID_SIZE], name[WEBHOOK_NAME_SIZE], url[URL_SIZE];
    char secret[SECRET_SIZE]; /* "" where only the configuration has it */
    unsigned types;
    int retry_ms, timeout_ms;
    bool configured; /* it stands in the configuration, which alone can change it */
    bool paused;
    char disabled[WEBHOOK_CAUSE_SIZE]; /* the receiver said that it is gone; "" */
    int64_t created_ms;
    int64_t failing_ms; /* since when no try succeeded; 0: the last one did */
    int64_t delivered_ms;
    int64_t delivered, failures, dropped; /* counted since it was made */
    int64_t waiting, dead;                /* that are there now */
    char cause[WEBHOOK_CAUSE_SIZE];       /* of the last failure */
};

#define DELIVERY_STATE_MAP(X)                                                            \
    X(DELIVERY_WAITING, "waiting")                                                       \
    X(DELIVERY_DELIVERED, "delivered")                                                   \
    X(DELIVERY_DEAD, "dead")

enum delivery_state {
#define X(code, name) code,
    DELIVERY_STATE_MAP(X)
#undef X
        DELIVERY_STATES
};
const char *delivery_state_name(enum delivery_state state);
enum delivery_state delivery_state_parse(const char *name); /* or DELIVERY_STATES */

struct delivery_row {
    int64_t number; /* grows, never reused */
    char message[MESSAGE_ID_SIZE];
    enum webhook_type type;
    enum delivery_state state;
    int attempts;
    int status;                     /* of the last answer; 0: there was none */
    char cause[WEBHOOK_CAUSE_SIZE]; /* of the last failure; "" */
    int64_t at_ms;                  /* when it happened */
    int64_t created_ms, tried_ms;   /* tried_ms 0: never */
    int64_t next_ms;                /* if it waits */
    int64_t ended_ms;               /* if it does not */
    const char *body;               /* borrowed */
};

/* Reads a webhook as a body of the API or the configuration has it: name, url, secret,
 * types, retry_ms, timeout_ms.  What is wrong is told to REFUSE; false then. */
bool webhook_read(const json_t *json, struct webhook *ret_webhook, in_fault_fn *refuse,
                  void *arg);

/* One of the configuration, of which WHERE is said in front of an error.  It has a
 * secret, or a file that has it, which is read. */
enum err_code webhook_read_configured(const json_t *json, const char *where,
                                      struct webhook *ret_webhook, struct err *err);

#endif
