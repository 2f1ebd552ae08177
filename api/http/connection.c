#include "api/http/connection.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "daemon/base/mem.h"

struct connection *connection_add(struct connections *list, int fd, int64_t now_ms)
{
    struct connection *c = xcalloc(1, sizeof *c);

    c->fd = fd;
    LIST_INSERT_HEAD(&list->open, c, entry);
    list->count++;
    connection_await(list, c, now_ms);
    return c;
}

void connection_remove(struct connections *list, struct connection *c)
{
    list->count--;
    LIST_REMOVE(c, entry);
    free(c);
}

void connection_expect(struct connections *list, struct connection *c, int64_t now_ms,
                       int64_t after_ms)
{
    c->waits = 0;
    c->deadline_ms = after_ms ? now_ms + after_ms : 0;
    if (c->deadline_ms && (!list->next_due_ms || c->deadline_ms < list->next_due_ms)) {
        list->next_due_ms = c->deadline_ms;
    }
}

void connection_await(struct connections *list, struct connection *c, int64_t now_ms)
{
    connection_expect(list, c, now_ms, CONNECTION_RECEIVE_MS);
    c->waits = ++list->last_waits;
}

static struct connection *longest_waiting(const struct connections *list)
{
    struct connection *longest = NULL;

    for (struct connection *c = LIST_FIRST(&list->open); c; c = LIST_NEXT(c, entry)) {
        if (c->waits && !c->ended && (!longest || c->waits < longest->waits)) {
            longest = c;
        }
    }
    return longest;
}

void connections_make_room(struct connections *list, int limit, int spared)
{
    int over = list->count - limit;
    int waiting = 0;

    for (const struct connection *c = LIST_FIRST(&list->open); c && over > 0;
         c = LIST_NEXT(c, entry)) {
        over -= c->ended;
        waiting += c->waits && !c->ended;
    }
    for (; over > 0 && waiting > spared; over--, waiting--) {
        struct connection *c = longest_waiting(list);

        c->ended = true;
        c->deadline_ms = 0;
        list->made_room++;
        shutdown(c->fd, SHUT_RDWR);
    }
}

void connections_sweep(struct connections *list, int64_t now_ms)
{
    if (!list->next_due_ms || now_ms < list->next_due_ms) {
        return;
    }
    list->next_due_ms = 0;
    for (struct connection *c = LIST_FIRST(&list->open); c; c = LIST_NEXT(c, entry)) {
        if (c->deadline_ms && c->deadline_ms <= now_ms) {
            c->deadline_ms = 0;
            shutdown(c->fd, SHUT_RDWR);
        } else if (c->deadline_ms &&
                   (!list->next_due_ms || c->deadline_ms < list->next_due_ms)) {
            list->next_due_ms = c->deadline_ms;
        }
    }
}

void connections_drop_stuck(struct connections *list, int64_t now_ms)
{
    for (struct connection *c = LIST_FIRST(&list->open); c; c = LIST_NEXT(c, entry)) {
        if (c->arrived_ms && now_ms - c->arrived_ms >= CONNECTION_STUCK_MS) {
            c->arrived_ms = 0;
            shutdown(c->fd, SHUT_RDWR);
        }
    }
}
