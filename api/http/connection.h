/* Connections and their deadlines.
 *
 * The library's own timeout is one of inactivity, which a byte now and then defeats.  So
 * each connection has a deadline of our own: by when its next request must have arrived
 * whole, and by when a reply must have been taken.  An overdue socket is shut down; the
 * library then sees its end and cleans up.  Event streams have no deadline.
 *
 * Of some requests that it cannot go on with, a line of a chunk without an end, the
 * library asks to be run again at once, for ever.  While it does so, a request that has
 * begun and of which nothing arrived for a while is taken to be that one. */
#ifndef API_HTTP_CONNECTION_H
#define API_HTTP_CONNECTION_H

#include <stdint.h>
#include <sys/queue.h>

enum {
    CONNECTION_RECEIVE_MS = 15000,
    CONNECTION_SEND_MS = 60000,
    CONNECTION_STUCK_MS = 500
};

struct connection {
    int fd;              /* borrowed from the library */
    int64_t deadline_ms; /* monotonic; 0: none */
    int64_t arrived_ms;  /* when something of the request that is being received last
                            did; 0: none is */
    LIST_ENTRY(connection) entry;
};

struct connections {
    LIST_HEAD(connection_list, connection) open;
    int64_t next_due_ms; /* no deadline is earlier; 0: there is none */
};

/* Adds a new connection, waiting for its first request. */
struct connection *connection_add(struct connections *list, int fd, int64_t now_ms);
void connection_remove(struct connection *connection);

/* Sets the deadline AFTER_MS from now; 0: none. */
void connection_expect(struct connections *list, struct connection *connection,
                       int64_t now_ms, int64_t after_ms);

/* Shuts down what is overdue. */
void connections_sweep(struct connections *list, int64_t now_ms);

/* Shuts down each connection whose request got nowhere for CONNECTION_STUCK_MS. */
void connections_drop_stuck(struct connections *list, int64_t now_ms);

#endif
