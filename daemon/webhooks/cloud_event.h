/* What is sent: a CloudEvent 1.0 in structured JSON (cloudevents.io, spec 1.0.2, JSON
 * format).  Pure. */
#ifndef DAEMON_WEBHOOKS_CLOUD_EVENT_H
#define DAEMON_WEBHOOKS_CLOUD_EVENT_H

#include <stdint.h>

#include "daemon/base/buf.h"
#include "daemon/webhooks/types.h"

enum { MESSAGE_ID_SIZE = 96, CLOUD_EVENT_DATA_MOST = 65536 };

struct cloud_event {
    const char *id;      /* the same at each try, and of nothing else */
    const char *source;  /* "reprod://HOST:PORT" */
    const char *subject; /* "cells/7" */
    const char *data;    /* a JSON object */
    enum webhook_type type;
    int64_t at_ms;
};

/* The whole body.  Data of more than CLOUD_EVENT_DATA_MOST bytes are left out:
 * {"too_large": bytes}. */
void cloud_event_body(const struct cloud_event *event, struct buf *ret_body);

#endif
