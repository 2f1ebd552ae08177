#include "api/http/renew.h"

#include <stdlib.h>
#include <string.h>

#include "api/http/reply.h"
#include "daemon/base/mem.h"

int64_t renew_age_ms(const struct request *r)
{
    const char *directives = request_header(r, "Cache-Control");
    const struct device_stack *devices;
    int64_t count = r->api->hooks.devices(r->api->hooks.arg, &devices);
    int64_t age_ms = count < RENEW_DEVICES ? 0 : count / 2;

    if (directives && strcasestr(directives, "no-cache")) {
        return 0;
    }
    return age_ms < RENEW_AGE_MAX_MS ? age_ms : RENEW_AGE_MAX_MS;
}

static void renewal_free(struct request *renewal)
{
    renewal->api->in_store--;
    renewal->state_free(renewal->state);
    reply_release(&renewal->reply);
    problems_release(&renewal->problems);
    free(renewal);
}

/* One that failed is made by who asks when the old one is too old. */
static void on_done(void *arg, const struct err *result)
{
    struct request *renewal = arg;

    if (result->code == ERR_OK && !renewal->reply.ready) {
        renewal->then(renewal);
    }
    renewal_free(renewal);
}

void request_renew(struct request *r, store_fn fn, void (*keep)(struct request *renewal))
{
    struct request *renewal = xcalloc(1, sizeof *renewal);
    struct err err;

    *renewal = (struct request){ .api = r->api,
                                 .route = r->route,
                                 .method = r->method,
                                 .format = r->format,
                                 .state = r->state,
                                 .state_free = r->state_free,
                                 .then = keep };
    r->state = NULL;
    r->api->in_store++; /* api_close waits for it */
    if (r->api->closing ||
        store_read_heavy(r->api->store, fn, renewal, on_done, &err) != ERR_OK) {
        renewal_free(renewal);
    }
}
