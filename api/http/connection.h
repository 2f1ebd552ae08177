/* Connections and their deadlines.
 *
 * The library's own timeout is one of inactivity, which a byte now and then defeats.  So
 * each connection has a deadline of our own: by when its next request must have arrived
 * whole, and by when a reply must have been taken.  An overdue socket is shut down; the
 * library then sees its end and cleans up.  Event streams have no deadline.
 *
 * Beyond the limit of connections there is a reserve.  As soon as it is used, those make
 * room that have waited longest for a request to come whole; and if there are none, those
 * whose clients have taken longest to take a reply.  So a new client is served however
 * many others keep silent, and whoever is being served stays.
 *
 * Of some requests that it cannot go on with, a line of a chunk without an end, the
 * library asks to be run again at once, for ever.  While it does so, a request that has
 * begun and of which nothing arrived for a while is taken to be that one. */
#ifndef API_HTTP_CONNECTION_H
#define API_HTTP_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "api/http/received.h"

enum {
    CONNECTION_RECEIVE_MS = 15000,
    CONNECTION_SEND_MS = 60000,
    CONNECTION_STUCK_MS = 500,
    CONNECTION_LOOK_MS = 500,
    CONNECTION_RESERVE = 64
};

struct connection {
    int fd;              /* borrowed from the library */
    int64_t deadline_ms; /* monotonic; 0: none */
    int64_t arrived_ms;  /* when something of the request that is being received last
                            did; 0: none is */
    enum {
        CONNECTION_SERVED, /* its request is here, and it is for us to go on */
        CONNECTION_WAITS,  /* for its next request */
        CONNECTION_TAKES   /* a reply */
    } state;
    bool ended;  /* made room; the library has yet to see it */
    bool spared; /* while room is made */
    struct received received;
    TAILQ_ENTRY(connection) entry;
};

struct connections {
    TAILQ_HEAD(connection_list, connection) open; /* in that state longest: first */
    int64_t next_due_ms; /* no deadline is earlier; 0: there is none */
    int64_t next_look_ms;
    int count;
    int64_t made_room; /* connections so far, */
    int64_t overdue;   /* and those that were shut down at their deadlines */
};

void connections_init(struct connections *list);

/* Adds a new connection, waiting for its first request. */
struct connection *connection_add(struct connections *list, int fd, int64_t now_ms);
void connection_remove(struct connections *list, struct connection *connection);

/* It waits for its next request to arrive whole, from NOW_MS on. */
void connection_await(struct connections *list, struct connection *connection,
                      int64_t now_ms);

/* Its request is here; a reply was made, which it takes from NOW_MS on. */
void connection_serve(struct connections *list, struct connection *connection);
void connection_take(struct connections *list, struct connection *connection,
                     int64_t now_ms);

/* Shuts down, of those that wait, and then of those that take a reply, those that have
 * done so for the longest time, as many as there are beyond LIMIT; but the last SPARED
 * that began may go on. */
void connections_make_room(struct connections *list, int limit, int spared);

/* Shuts down those that wait for a request and whose clients left.  The library reads
 * what came and waits for more: where the end came with it, it does not see it.  Looks at
 * most once in CONNECTION_LOOK_MS. */
void connections_look(struct connections *list, int64_t now_ms);

/* Shuts down what is overdue. */
void connections_sweep(struct connections *list, int64_t now_ms);

/* Shuts down each connection whose request got nowhere for CONNECTION_STUCK_MS. */
void connections_drop_stuck(struct connections *list, int64_t now_ms);

#endif
