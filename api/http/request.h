/* The nouns of this folder: one request, from its first line until its reply was sent,
 * and the server that it came to.
 *
 * Happy path: the target is kept raw, the headers are checked, the body is collected
 * (api/http/server.c), a route's handler is called, which replies at once
 * (api/http/reply.h) or after its work in the store, and the reply is sent.
 * Failure modes: a request that could be read in two ways is refused before its body; a
 * client that leaves completes the request at any time except while it is suspended.
 *
 * All of it belongs to the loop thread, except a request that is in the store: that one
 * belongs to the working thread alone. */
#ifndef API_HTTP_REQUEST_H
#define API_HTTP_REQUEST_H

#include <microhttpd.h>
#include <sys/queue.h>

#include "api/api.h"
#include "api/http/cache.h"
#include "api/http/connection.h"
#include "api/http/negotiate.h"
#include "api/http/stream.h"
#include "api/http/target.h"
#include "daemon/base/buf.h"
#include "daemon/jobs/problem.h"
#include "db/store.h"

enum {
    REQUEST_BODY_MAX = 1 << 20,
    REQUEST_DISCARD_MAX = 8 << 20, /* of a body that is too large, before hanging up */
    REQUEST_ARGUMENTS_MAX = 2,
    REPLY_HEADERS_MAX = 6
};

/* The server's own state. */
struct api {
    struct api_options options;     /* texts are owned */
    _Atomic int64_t stale_after_ms; /* instead of that of the options; readers read it */
    uint64_t configured;            /* how often it was, see api_reconfigure */
    struct api_hooks hooks;
    struct store *store;
    struct MHD_Daemon *mhd;
    int port;
    int listen_fd; /* ours again after api_quiesce; else -1 */
    bool pumping;  /* inside api_pump */
    bool kicked;   /* something was resumed: run once more */
    bool quiescing;
    bool closing;              /* no request may wait for the store any more */
    unsigned last_connections; /* open at the end of the last pump */
    bool progress;             /* the library called us since then */
    int fruitless;             /* pumps in a row without, each to be run again at once */
    int requests;              /* begun and not completed */
    int in_store;              /* of these, waiting for the store */
    struct connections connections;
    struct streams streams;
    struct cache cache;
    LIST_HEAD(request_list, request) in_flight; /* see api/http/flight.h */
    int64_t joined;                             /* requests so far that joined another */
    int64_t items_reserved;                     /* of jobs that are being stored */
    int64_t refused; /* because too many were waiting for the store */
};

struct reply_header {
    const char *name; /* static */
    char *value;
};

struct reply {
    bool ready;
    unsigned status;
    const char *content_type; /* static */
    char *body;               /* owned, unless borrowed */
    size_t length;
    bool borrowed; /* the body is valid always */
    char etag[ETAG_SIZE];
    struct cached *shared;       /* instead of a body */
    struct MHD_Response *stream; /* instead of a body */
    struct reply_header headers[REPLY_HEADERS_MAX];
    int header_count;
};

enum request_phase { REQUEST_NEW, REQUEST_RECEIVING, REQUEST_HANDLED };

struct request {
    struct api *api;
    struct MHD_Connection *connection;
    struct connection *peer;
    enum request_phase phase;
    char *raw;         /* the target as it came */
    uintptr_t raw_end; /* where it ended in the library's buffer */
    struct target target;
    const char *method;                           /* of the library; HEAD is GET here */
    const struct route *route;                    /* NULL until one was found */
    const char *arguments[REQUEST_ARGUMENTS_MAX]; /* the segments for {…} in the path */
    enum format format;
    struct buf body;
    size_t discarded; /* bytes of a body that is too large */
    struct problems problems;
    struct reply reply;
    void *state; /* the handler's own */
    void (*state_free)(void *state);
    store_fn work; /* running in the store */
    void (*then)(struct request *r);
    void (*failed)(struct request *r, const struct err *why); /* NULL: reply_error */
    bool suspended;
    bool heavy; /* its read may take more than a few milliseconds */
    uint64_t generation, configuration; /* as its read began */
    bool leads;                         /* others may join it */
    struct request_list followers;      /* who joined */
    LIST_ENTRY(request) in_flight;      /* of those that lead, or of its followers */
};

/* The header's value, or NULL. */
const char *request_header(const struct request *r, const char *name);

/* The values of all lines of a header that is a list, as one; NULL: there is none. Caller
 * frees. */
char *request_header_list(const struct request *r, const char *name);

/* The query parameter's value, or NULL. */
const char *request_parameter(const struct request *r, const char *name);

/* Keeps STATE for the handler's later steps; freed with FREE_STATE (NULL: free). */
void request_keep(struct request *r, void *state, void (*free_state)(void *state));

/* Something was resumed: have api_pump called soon. */
void api_kick(struct api *api);

#endif
