#include "api/http/flight.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

static bool is_same(const struct request *a, const struct request *b)
{
    return a->generation == b->generation && a->format == b->format &&
           a->configuration == b->configuration && strcmp(a->raw, b->raw) == 0;
}

bool flight_join(struct request *r)
{
    struct api *api = r->api;

    for (struct request *other = LIST_FIRST(&api->in_flight); other;
         other = LIST_NEXT(other, in_flight)) {
        if (is_same(r, other)) {
            LIST_INSERT_HEAD(&other->followers, r, in_flight);
            api->joined++;
            return true;
        }
    }
    LIST_INIT(&r->followers);
    LIST_INSERT_HEAD(&api->in_flight, r, in_flight);
    r->leads = true;
    return false;
}

/* A reply that has a validator is one response for all; the others are short. */
static void share_body(struct reply *reply)
{
    if (reply->etag[0] && !reply->shared && !reply->borrowed) {
        reply->shared = cached_new(reply->body, reply->length, reply->etag);
        reply->body = NULL;
    }
}

static void copy_reply(const struct reply *from, struct reply *to)
{
    *to = *from;
    if (to->shared) {
        to->shared->references++;
    } else if (!to->borrowed) {
        to->body = xcalloc(1, from->length + 1);
        memcpy(to->body, from->body, from->length);
    }
    for (int i = 0; i < to->header_count; i++) {
        to->headers[i].value = xstrdup(from->headers[i].value);
    }
}

void flight_land(struct request *r, void (*resume)(struct request *r))
{
    struct request *next;

    if (!r->leads) {
        return;
    }
    r->leads = false;
    LIST_REMOVE(r, in_flight);
    if (LIST_FIRST(&r->followers)) {
        share_body(&r->reply);
    }
    for (struct request *each = LIST_FIRST(&r->followers); each; each = next) {
        next = LIST_NEXT(each, in_flight);
        copy_reply(&r->reply, &each->reply);
        resume(each);
    }
}
