/* One try: a POST over a connection of its own, on the loop, within a deadline; only a
 * resolver that hangs is waited for.
 *
 * The host is resolved, each of its addresses is looked at (daemon/webhooks/address.h),
 * and the first that is allowed and takes the connection gets the request.  Nothing is
 * followed, and of the answer the head alone is read. */
#ifndef DAEMON_DELIVERY_SENDING_H
#define DAEMON_DELIVERY_SENDING_H

#include <uv.h>

#include "daemon/delivery/tls.h"
#include "daemon/webhooks/address.h"
#include "daemon/webhooks/answer_head.h"
#include "daemon/webhooks/url.h"
#include "daemon/webhooks/webhook.h"

struct sending;

struct sending_request {
    struct url url;
    const char *headers; /* lines, each with CRLF; copied, as the body is */
    const char *body;
    int timeout_ms;
    struct networks allowed;
    const struct tls_trust *trust; /* of an https URL; outlives it */
};

/* status 0: CAUSE says why there was no answer. */
struct sending_result {
    struct answer_head head;
    char cause[WEBHOOK_CAUSE_SIZE];
};

/* DONE(ARG, result) is called once, later. */
struct sending *
sending_start(uv_loop_t *loop, const struct sending_request *request,
              void (*done)(void *arg, const struct sending_result *result), void *arg);

/* DONE is not called any more. */
void sending_abort(struct sending *sending);

#endif
