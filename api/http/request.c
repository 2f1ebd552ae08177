#include "api/http/request.h"

#include <stdlib.h>
#include <string.h>

#include "api/http/dispatch.h"
#include "api/http/guard.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"

void *request_note_target(void *arg, const char *target,
                          struct MHD_Connection *connection)
{
    struct api *api = arg;
    struct request *r = xcalloc(1, sizeof *r);
    size_t length = strlen(target);

    r->api = api;
    r->connection = connection;
    r->raw = xstrndup(target, length);
    r->raw_end = (uintptr_t)target + length;
    r->peer = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
                  ->socket_context;
    api->requests++;
    return r;
}

/* Headers are here, the body is not.  A reply now closes the connection, as it must when
 * it is not certain where the request ends. */
static enum MHD_Result begin(struct request *r, const char *method, const char *version)
{
    const char *problem = target_parse(r->raw, &r->target);

    r->phase = REQUEST_RECEIVING;
    r->method = strcmp(method, "HEAD") == 0 ? "GET" : method;
    /* The library ends the target at a NUL and looks for the version from the other end;
     * both point into one buffer, so whatever lies between shows. */
    if (!problem && (uintptr_t)version != r->raw_end + 1) {
        problem = "the request line holds a NUL";
    }
    if (problem && strcmp(r->raw, "*") != 0) {
        reply_problem(r, PROBLEM_BAD_REQUEST, "%s", problem);
        return reply_send(r);
    }
    return guard_admits(r) ? MHD_YES : reply_send(r);
}

static enum MHD_Result collect(struct request *r, const char *data, size_t length)
{
    if (r->discarded == 0 && r->body.length + length <= REQUEST_BODY_MAX) {
        buf_add(&r->body, data, length);
        return MHD_YES;
    }
    /* There is no answering while a body arrives: take a bounded rest of it. */
    r->discarded += length;
    return r->discarded <= REQUEST_DISCARD_MAX ? MHD_YES : MHD_NO;
}

enum MHD_Result request_handle(void *arg, struct MHD_Connection *connection,
                               const char *url, const char *method, const char *version,
                               const char *upload, size_t *upload_size, void **request)
{
    struct api *api = arg;
    struct request *r = *request;

    (void)connection;
    (void)url;
    if (r->phase == REQUEST_NEW) {
        return begin(r, method, version);
    }
    if (*upload_size > 0) {
        size_t length = *upload_size;

        *upload_size = 0;
        return collect(r, upload, length);
    }
    if (r->phase == REQUEST_RECEIVING) {
        r->phase = REQUEST_HANDLED;
        connection_expect(&api->connections, r->peer, 0, 0);
        if (r->discarded) {
            reply_problem(r, PROBLEM_TOO_LARGE, "a body has at most %d bytes",
                          REQUEST_BODY_MAX);
        } else {
            dispatch(r);
        }
    }
    /* While suspended the reply belongs to the thread that is making it. */
    return !r->suspended && r->reply.ready ? reply_send(r) : MHD_YES;
}

void request_completed(void *arg, struct MHD_Connection *connection, void **request,
                       enum MHD_RequestTerminationCode why)
{
    struct api *api = arg;
    struct request *r = *request;

    (void)connection;
    (void)why;
    if (!r) {
        return;
    }
    *request = NULL;
    connection_expect(&api->connections, r->peer, clock_monotonic_ms(),
                      CONNECTION_RECEIVE_MS);
    request_keep(r, NULL, NULL);
    reply_release(&r->reply);
    problems_release(&r->problems);
    target_release(&r->target);
    buf_release(&r->body);
    free(r->raw);
    free(r);
    api->requests--;
}

const char *request_header(const struct request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

const char *request_parameter(const struct request *r, const char *name)
{
    return target_parameter(&r->target, name);
}

void request_keep(struct request *r, void *state, void (*free_state)(void *state))
{
    if (r->state) {
        (r->state_free ? r->state_free : free)(r->state);
    }
    r->state = state;
    r->state_free = free_state;
}
