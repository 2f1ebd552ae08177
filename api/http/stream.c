#include "api/http/stream.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "db/events.h"
#include "db/store.h"

enum { CHUNK = 64 << 10, BLOCK = 4096 };

struct stream_client {
    struct streams *streams;
    struct MHD_Connection *connection;
    int64_t last_id;    /* of what is in pending or was sent */
    struct buf pending; /* to be sent, from SENT on */
    size_t sent;
    bool suspended;
    bool left;
    LIST_ENTRY(stream_client) entry;
};

void streams_init(struct streams *s, struct store *store, void (*kick)(void *arg),
                  void *arg)
{
    *s = (struct streams){ .store = store, .kick = kick, .kick_arg = arg };
}

void stream_format(struct buf *buf, const struct event *event)
{
    buf_printf(buf, "id: %" PRId64 "\nevent: %s\n", event->id, event->kind);
    for (const char *line = event->data; line;) {
        size_t length = strcspn(line, "\r\n");

        buf_puts(buf, "data: ");
        buf_add(buf, line, length);
        buf_putc(buf, '\n');
        line = line[length] ? line + length + 1 : NULL;
    }
    buf_putc(buf, '\n');
}

/* Takes what the ring has for C, up to a chunk.  False if the ring has lost some. */
static bool refill(struct stream_client *c)
{
    const struct streams *s = c->streams;

    c->pending.length = 0;
    c->sent = 0;
    if (c->last_id < s->floor_id) {
        return false;
    }
    for (int i = 0; i < s->ring_count && c->pending.length < CHUNK; i++) {
        const struct stream_event *e = &s->ring[(s->ring_first + i) % STREAM_RING_EVENTS];

        if (e->id > c->last_id) {
            buf_puts(&c->pending, e->text);
            c->last_id = e->id;
        }
    }
    return true;
}

static ssize_t client_read(void *arg, uint64_t position, char *to, size_t max)
{
    struct stream_client *c = arg;
    size_t length;

    (void)position;
    if (c->left || (c->sent == c->pending.length && !refill(c))) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    length = c->pending.length - c->sent;
    if (length == 0) {
        if (c->streams->ending) {
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
        c->suspended = true;
        MHD_suspend_connection(c->connection);
        return 0;
    }
    length = length < max ? length : max;
    memcpy(to, c->pending.data + c->sent, length);
    c->sent += length;
    return (ssize_t)length;
}

static void client_free(void *arg)
{
    struct stream_client *c = arg;
    struct streams *s = c->streams;

    LIST_REMOVE(c, entry);
    s->count--;
    buf_release(&c->pending);
    free(c);
}

static void empty_ring(struct streams *s, int64_t floor_id)
{
    for (int i = 0; i < s->ring_count; i++) {
        free(s->ring[(s->ring_first + i) % STREAM_RING_EVENTS].text);
    }
    s->ring_first = 0;
    s->ring_count = 0;
    s->floor_id = floor_id;
    s->last_id = floor_id;
}

struct MHD_Response *stream_join(struct streams *s, struct MHD_Connection *connection,
                                 int64_t last_id, struct buf *backlog)
{
    struct stream_client *c = xcalloc(1, sizeof *c);
    struct MHD_Response *response;

    if (s->count == 0) {
        empty_ring(s, last_id);
    }
    c->streams = s;
    c->connection = connection;
    c->last_id = last_id;
    c->pending = *backlog;
    *backlog = (struct buf)BUF_INIT;
    LIST_INSERT_HEAD(&s->clients, c, entry);
    s->count++;
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, client_read, c,
                                                 client_free);
    if (!response) {
        abort();
    }
    /* Something may have been committed since LAST_ID was read. */
    streams_changed(s);
    return response;
}

static void wake(struct streams *s)
{
    for (struct stream_client *c = LIST_FIRST(&s->clients); c; c = LIST_NEXT(c, entry)) {
        if (c->suspended) {
            c->suspended = false;
            MHD_resume_connection(c->connection);
        }
    }
    s->kick(s->kick_arg);
}

/* One read of new events. */
struct fetch {
    struct streams *streams;
    int64_t after;
    struct stream_event events[STREAM_READ_EVENTS];
    int count;
};

static void fetch_one(void *arg, const struct event *event)
{
    struct fetch *f = arg;
    struct buf buf = BUF_INIT;

    stream_format(&buf, event);
    f->events[f->count++] = (struct stream_event){ event->id, buf_detach(&buf, NULL) };
}

static enum err_code fetch_events(struct tx *tx, void *arg, struct err *err)
{
    struct fetch *f = arg;

    return events_each(tx, f->after, STREAM_READ_EVENTS, fetch_one, f, err);
}

static void push(struct streams *s, const struct stream_event *event)
{
    if (s->ring_count == STREAM_RING_EVENTS) {
        struct stream_event *oldest = &s->ring[s->ring_first];

        s->floor_id = oldest->id;
        free(oldest->text);
        s->ring_first = (s->ring_first + 1) % STREAM_RING_EVENTS;
        s->ring_count--;
    }
    s->ring[(s->ring_first + s->ring_count++) % STREAM_RING_EVENTS] = *event;
    s->last_id = event->id;
}

static void fetched(void *arg, const struct err *result)
{
    struct fetch *f = arg;
    struct streams *s = f->streams;

    s->reading = false;
    s->dirty |= result->code != ERR_OK || f->count == STREAM_READ_EVENTS;
    for (int i = 0; i < f->count; i++) {
        /* The ring may have restarted meanwhile, at a later event. */
        if (f->events[i].id > s->last_id) {
            push(s, &f->events[i]);
        } else {
            free(f->events[i].text);
        }
    }
    wake(s);
    free(f);
}

static void start_fetch(struct streams *s, int64_t now_ms)
{
    struct fetch *f = xcalloc(1, sizeof *f);
    struct err err;

    s->next_read_ms = now_ms + STREAM_INTERVAL_MS;
    f->streams = s;
    f->after = s->last_id;
    if (store_read(s->store, fetch_events, f, fetched, &err) != ERR_OK) {
        free(f); /* busy: still dirty, so it is tried again */
        return;
    }
    s->dirty = false;
    s->reading = true;
}

void streams_changed(struct streams *s)
{
    if (s->count > 0 && !s->dirty) {
        s->dirty = true;
        s->kick(s->kick_arg);
    }
}

/* The library looks at no connection that is suspended: it does not notice that the
 * client has left.  One that says that it sends no more has left, too. */
static void look(struct streams *s)
{
    struct pollfd polls[STREAM_CLIENTS_MAX];
    struct stream_client *clients[STREAM_CLIENTS_MAX];
    int count = 0;
    int left = 0;

    for (struct stream_client *c = LIST_FIRST(&s->clients); c; c = LIST_NEXT(c, entry)) {
        if (c->suspended && count < STREAM_CLIENTS_MAX) {
            int fd =
                MHD_get_connection_info(c->connection, MHD_CONNECTION_INFO_CONNECTION_FD)
                    ->connect_fd;

            polls[count] = (struct pollfd){ .fd = fd, .events = POLLRDHUP };
            clients[count++] = c;
        }
    }
    poll(polls, (nfds_t)count, 0);
    for (int i = 0; i < count; i++) {
        clients[i]->left = polls[i].revents != 0;
        left += clients[i]->left;
    }
    if (left > 0) {
        wake(s);
    }
}

/* Also keeps what lies between from taking the connection for dead. */
static void beat(struct streams *s)
{
    static const char heartbeat[] = ": still here\n\n";

    for (struct stream_client *c = LIST_FIRST(&s->clients); c; c = LIST_NEXT(c, entry)) {
        if (c->sent == c->pending.length) {
            c->pending.length = 0;
            c->sent = 0;
            buf_puts(&c->pending, heartbeat);
        }
    }
    wake(s);
}

int64_t streams_tick(struct streams *s, int64_t now_ms)
{
    int64_t due;

    if (s->count == 0) {
        s->next_heartbeat_ms = 0;
        return 0;
    }
    if (s->dirty && !s->reading && now_ms >= s->next_read_ms && !s->ending) {
        start_fetch(s, now_ms);
    }
    if (!s->next_heartbeat_ms || now_ms >= s->next_heartbeat_ms) {
        if (s->next_heartbeat_ms) {
            beat(s);
        }
        s->next_heartbeat_ms = now_ms + STREAM_HEARTBEAT_MS;
    }
    if (now_ms >= s->next_look_ms) {
        look(s);
        s->next_look_ms = now_ms + STREAM_LOOK_MS;
    }
    due = s->next_look_ms < s->next_heartbeat_ms ? s->next_look_ms : s->next_heartbeat_ms;
    if (s->dirty && !s->reading && s->next_read_ms < due) {
        due = s->next_read_ms;
    }
    return due;
}

void streams_end(struct streams *s)
{
    s->ending = true;
    wake(s);
}

void streams_release(struct streams *s)
{
    empty_ring(s, 0);
}
