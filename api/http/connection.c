#include "api/http/connection.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "daemon/base/mem.h"

void connections_init(struct connections *list)
{
    *list = (struct connections){ .count = 0 };
    TAILQ_INIT(&list->open);
}

struct connection *connection_add(struct connections *list, int fd, int64_t now_ms)
{
    struct connection *c = xcalloc(1, sizeof *c);

    c->fd = fd;
    received_watch(fd, &c->received);
    TAILQ_INSERT_TAIL(&list->open, c, entry);
    list->count++;
    connection_await(list, c, now_ms);
    return c;
}

void connection_remove(struct connections *list, struct connection *c)
{
    list->count--;
    received_forget(c->fd);
    TAILQ_REMOVE(&list->open, c, entry);
    free(c);
}

/* Puts C behind all others, in STATE and with a deadline AFTER_MS from now; 0: none. */
static void enter(struct connections *list, struct connection *c, int state,
                  int64_t now_ms, int64_t after_ms)
{
    TAILQ_REMOVE(&list->open, c, entry);
    TAILQ_INSERT_TAIL(&list->open, c, entry);
    c->state = state;
    c->deadline_ms = after_ms ? now_ms + after_ms : 0;
    if (c->deadline_ms && (!list->next_due_ms || c->deadline_ms < list->next_due_ms)) {
        list->next_due_ms = c->deadline_ms;
    }
}

void connection_await(struct connections *list, struct connection *c, int64_t now_ms)
{
    enter(list, c, CONNECTION_WAITS, now_ms, CONNECTION_RECEIVE_MS);
}

void connection_serve(struct connections *list, struct connection *c)
{
    enter(list, c, CONNECTION_SERVED, 0, 0);
}

void connection_take(struct connections *list, struct connection *c, int64_t now_ms)
{
    enter(list, c, CONNECTION_TAKES, now_ms, CONNECTION_SEND_MS);
}

static void shut(struct connection *c)
{
    c->deadline_ms = 0;
    shutdown(c->fd, SHUT_RDWR);
}

/* Ends at most COUNT in STATE; returns how many. */
static int end_longest(struct connections *list, int state, int count)
{
    int ended = 0;

    for (struct connection *c = TAILQ_FIRST(&list->open); c && ended < count;
         c = TAILQ_NEXT(c, entry)) {
        if ((int)c->state == state && !c->ended && !c->spared) {
            c->ended = true;
            shut(c);
            ended++;
        }
    }
    list->made_room += ended;
    return ended;
}

void connections_make_room(struct connections *list, int limit, int spared)
{
    int over = list->count - limit;

    if (over <= 0) {
        return;
    }
    for (struct connection *c = TAILQ_LAST(&list->open, connection_list); c;
         c = TAILQ_PREV(c, connection_list, entry)) {
        c->spared = spared > 0 && c->state != CONNECTION_SERVED && !c->ended;
        spared -= c->spared;
        over -= c->ended;
    }
    over -= end_longest(list, CONNECTION_WAITS, over);
    end_longest(list, CONNECTION_TAKES, over);
}

/* It began to wait so long ago that the library has looked at all that it read, and there
 * is nothing more to read but the end. */
static bool has_left(const struct connection *c, int64_t now_ms)
{
    enum { LOOKED_MS = 100 };
    char byte;

    return now_ms >= c->deadline_ms - CONNECTION_RECEIVE_MS + LOOKED_MS &&
           recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void connections_look(struct connections *list, int64_t now_ms)
{
    if (now_ms < list->next_look_ms) {
        return;
    }
    list->next_look_ms = now_ms + CONNECTION_LOOK_MS;
    for (struct connection *c = TAILQ_FIRST(&list->open); c; c = TAILQ_NEXT(c, entry)) {
        if (c->state == CONNECTION_WAITS && c->deadline_ms && has_left(c, now_ms)) {
            shut(c);
        }
    }
}

void connections_sweep(struct connections *list, int64_t now_ms)
{
    if (!list->next_due_ms || now_ms < list->next_due_ms) {
        return;
    }
    list->next_due_ms = 0;
    for (struct connection *c = TAILQ_FIRST(&list->open); c; c = TAILQ_NEXT(c, entry)) {
        if (c->deadline_ms && c->deadline_ms <= now_ms) {
            list->overdue++;
            shut(c);
        } else if (c->deadline_ms &&
                   (!list->next_due_ms || c->deadline_ms < list->next_due_ms)) {
            list->next_due_ms = c->deadline_ms;
        }
    }
}

void connections_drop_stuck(struct connections *list, int64_t now_ms)
{
    for (struct connection *c = TAILQ_FIRST(&list->open); c; c = TAILQ_NEXT(c, entry)) {
        if (c->arrived_ms && now_ms - c->arrived_ms >= CONNECTION_STUCK_MS) {
            c->arrived_ms = 0;
            shutdown(c->fd, SHUT_RDWR);
        }
    }
}
