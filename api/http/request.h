/* One request, from its first line until its reply was sent.
 *
 * Happy path: the target is kept raw, the headers are checked, the body is collected, a
 * route's handler is called, which replies at once or goes through the store
 * (api/http/work.h), and the reply is sent.  Failure modes: a request that could be read
 * in two ways is refused before its body; a client that leaves completes the request at
 * any time except while it is suspended. */
#ifndef API_HTTP_REQUEST_H
#define API_HTTP_REQUEST_H

#include <microhttpd.h>

#include "api/http/negotiate.h"
#include "api/http/reply.h"
#include "api/http/server.h"
#include "api/http/target.h"
#include "daemon/jobs/problem.h"
#include "db/store.h"

enum {
    REQUEST_BODY_MAX = 1 << 20,
    REQUEST_DISCARD_MAX = 8 << 20, /* of a body that is too large, before hanging up */
    REQUEST_ARGUMENTS_MAX = 2
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
    const char *arguments[REQUEST_ARGUMENTS_MAX]; /* what stands for {…} in the path */
    enum format format;
    struct buf body;
    size_t discarded; /* bytes of a body that is too large */
    struct problems problems;
    struct reply reply;
    void *state; /* the handler's own */
    void (*state_free)(void *state);
    store_fn work; /* running in the store */
    void (*then)(struct request *r);
    bool suspended;
};

/* The library's callbacks. */
void *request_note_target(void *api, const char *target,
                          struct MHD_Connection *connection);
enum MHD_Result request_handle(void *api, struct MHD_Connection *connection,
                               const char *url, const char *method, const char *version,
                               const char *upload, size_t *upload_size, void **request);
void request_completed(void *api, struct MHD_Connection *connection, void **request,
                       enum MHD_RequestTerminationCode why);

/* The header's value, or NULL. */
const char *request_header(const struct request *r, const char *name);

/* The query parameter's value, or NULL. */
const char *request_parameter(const struct request *r, const char *name);

/* Keeps STATE for the handler's later steps; freed with FREE_STATE (NULL: free). */
void request_keep(struct request *r, void *state, void (*free_state)(void *state));

#endif
