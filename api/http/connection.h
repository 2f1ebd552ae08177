/* Connections and their deadlines.
 *
 * The library's own timeout is one of inactivity, which a byte now and then defeats.  So
 * each connection has a deadline of our own: by when its next request must have arrived
 * whole, and by when a reply must have been taken.  An overdue socket is shut down; the
 * library then sees its end and cleans up.  Event streams have no deadline.
 *
 * Beyond the limit of connections there is a reserve.  As soon as it is used, those make
 * room that have waited longest for a request to come whole: so a new client is served
 * however many others keep silent, and whoever is being served stays.
 *
 * Of some requests that it cannot go on with, a line of a chunk without an end, the
 * library asks to be run again at once, for ever.  While it does so, a request that has
 * begun and of which nothing arrived for a while is taken to be that one. */
#ifndef API_HTTP_CONNECTION_H
#define API_HTTP_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

enum {
    CONNECTION_RECEIVE_MS = 15000,
    CONNECTION_SEND_MS = 60000,
    CONNECTION_STUCK_MS = 500,
    CONNECTION_RESERVE = 64
};

struct connection {
    int fd;              /* borrowed from the library */
    int64_t deadline_ms; /* monotonic; 0: none */
    int64_t arrived_ms;  /* when something of the request that is being received last
                            did; 0: none is */
    int64_t waits; /* since when it waits for its next request, as a number that grows
                      with each; 0: it does not */
    bool ended;    /* made room; the library has yet to see it */
    LIST_ENTRY(connection) entry;
};

struct connections {
    LIST_HEAD(connection_list, connection) open;
    int64_t next_due_ms; /* no deadline is earlier; 0: there is none */
    int64_t last_waits;
    int count;
    int64_t made_room; /* connections so far */
};

/* Adds a new connection, waiting for its first request. */
struct connection *connection_add(struct connections *list, int fd, int64_t now_ms);
void connection_remove(struct connections *list, struct connection *connection);

/* It waits for its next request to arrive whole, from NOW_MS on.  Ended by
 * connection_expect. */
void connection_await(struct connections *list, struct connection *connection,
                      int64_t now_ms);

/* Sets the deadline AFTER_MS from now; 0: none. */
void connection_expect(struct connections *list, struct connection *connection,
                       int64_t now_ms, int64_t after_ms);

/* Shuts down, of those that wait and for the longest time, as many as there are beyond
 * LIMIT; but the last SPARED that began to wait may go on. */
void connections_make_room(struct connections *list, int limit, int spared);

/* Shuts down what is overdue. */
void connections_sweep(struct connections *list, int64_t now_ms);

/* Shuts down each connection whose request got nowhere for CONNECTION_STUCK_MS. */
void connections_drop_stuck(struct connections *list, int64_t now_ms);

#endif
