/* Connections and their deadlines.
 *
 * The library's own timeout is one of inactivity, which a byte now and then defeats.  So
 * each connection has a deadline of our own: by when its next request must have arrived
 * whole, and by when a reply must have been taken.  An overdue socket is shut down; the
 * library then sees its end and cleans up.  Event streams have no deadline. */
#ifndef API_HTTP_CONNECTION_H
#define API_HTTP_CONNECTION_H

#include <stdint.h>
#include <sys/queue.h>

enum { CONNECTION_RECEIVE_MS = 15000, CONNECTION_SEND_MS = 60000 };

struct connection {
    int fd;              /* borrowed from the library */
    int64_t deadline_ms; /* monotonic; 0: none */
    LIST_ENTRY(connection) beside;
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

#endif
