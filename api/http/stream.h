/* Event streams (server-sent events): every commit's outbox events to every listener.
 *
 * Happy path: a listener joins with what it has missed, and is suspended; when something
 * was committed, one read fetches the new events, at most every STREAM_INTERVAL_MS, into
 * a ring that all listeners copy from.  Failure modes: a listener that falls behind the
 * ring is cut off and comes back with Last-Event-ID; one that is gone is noticed only by
 * writing to it, hence the heartbeat; nothing is read while nobody listens. */
#ifndef API_HTTP_STREAM_H
#define API_HTTP_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/base/buf.h"

enum {
    STREAM_CLIENTS_MAX = 64,
    STREAM_RING_EVENTS = 1024,
    STREAM_READ_EVENTS = 500,    /* in one read */
    STREAM_REPLAY_EVENTS = 1000, /* for a listener that comes back; else a reset */
    STREAM_INTERVAL_MS = 100,
    STREAM_HEARTBEAT_MS = 15000,
    STREAM_LOOK_MS = 1000 /* whether clients have left */
};

struct event;
struct MHD_Connection;
struct MHD_Response;
struct store;
struct stream_client;

struct stream_event {
    int64_t id;
    char *text; /* as sent */
};

struct streams {
    struct store *store;
    void (*kick)(void *arg); /* have streams_tick called soon */
    void *kick_arg;
    bool ending;
    LIST_HEAD(stream_clients, stream_client) clients;
    int count;
    bool reading;              /* a read of new events is under way */
    bool dirty;                /* there may be new events */
    int64_t next_read_ms;      /* not before */
    int64_t next_heartbeat_ms; /* 0: nobody listens */
    int64_t next_look_ms;
    int64_t floor_id, last_id; /* the ring holds the events after floor, up to last */
    struct stream_event ring[STREAM_RING_EVENTS];
    int ring_first, ring_count;
};

void streams_init(struct streams *streams, struct store *store, void (*kick)(void *arg),
                  void *arg);

/* A listener that has seen everything up to LAST_ID once it was sent BACKLOG (takes what
 * it holds).  Returns its response, a reference for the caller. */
struct MHD_Response *stream_join(struct streams *streams,
                                 struct MHD_Connection *connection, int64_t last_id,
                                 struct buf *backlog);

/* There may be new events. */
void streams_changed(struct streams *streams);

/* Does what is due at NOW_MS (monotonic); returns when it wants to be called again, 0 for
 * no such time. */
int64_t streams_tick(struct streams *streams, int64_t now_ms);

/* Ends every stream. */
void streams_end(struct streams *streams);
void streams_release(struct streams *streams);

/* Appends EVENT as it is sent. */
void stream_format(struct buf *buf, const struct event *event);

#endif
