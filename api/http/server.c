/* The server: listens, hands requests from the library to their routes, and ends them
 * (api/api.h, api/http/request.h). */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/http/cache.h"
#include "api/http/connection.h"
#include "api/http/dispatch.h"
#include "api/http/guard.h"
#include "api/http/head.h"
#include "api/http/library_errors.h"
#include "api/http/reply.h"
#include "api/http/stream.h"
#include "daemon/base/buf.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "db/store.h"

enum {
    IDLE_SECONDS = 60,                  /* a peer that neither sends nor takes anything */
    CONNECTION_MEMORY_BYTES = 16 << 10, /* request line and headers fit, or 431 */
    SEND_BUFFER_BYTES = 256 << 10,      /* in the kernel, a connection */
    LIMIT_TICK_MS = 1000
};

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static enum err_code parse_address(const struct api_options *options,
                                   union address *ret_address, socklen_t *ret_length,
                                   struct err *err)
{
    union address a;
    bool loopback;

    memset(&a, 0, sizeof a);
    if (options->port < 0 || options->port > 65535) {
        return err_set(err, ERR_INVALID, "%d is not a port", options->port);
    }
    if (inet_pton(AF_INET, options->address, &a.v4.sin_addr) == 1) {
        a.v4.sin_family = AF_INET;
        a.v4.sin_port = htons((uint16_t)options->port);
        loopback = ntohl(a.v4.sin_addr.s_addr) >> 24 == 127;
        *ret_length = sizeof a.v4;
    } else if (inet_pton(AF_INET6, options->address, &a.v6.sin6_addr) == 1) {
        a.v6.sin6_family = AF_INET6;
        a.v6.sin6_port = htons((uint16_t)options->port);
        loopback = IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr);
        *ret_length = sizeof a.v6;
    } else {
        return err_set(err, ERR_INVALID, "'%s' is not a numeric address",
                       options->address);
    }
    *ret_address = a;
    return loopback ? ERR_OK
                    : err_set(err, ERR_UNSUPPORTED,
                              "%s is not a loopback address; other addresses need TLS "
                              "and tokens, which this version does not have",
                              options->address);
}

static enum err_code open_listener(const struct api_options *options, int *ret_fd,
                                   int *ret_port, struct err *err)
{
    union address address = { .v4 = { 0 } };
    socklen_t length = 0;
    int one = 1;
    int fd;

    if (parse_address(options, &address, &length, err) != ERR_OK) {
        return err->code;
    }
    fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return err_set_errno(err, errno, "socket");
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, &address.any, length) != 0 || listen(fd, SOMAXCONN) != 0 ||
        getsockname(fd, &address.any, &length) != 0) {
        int reason = errno;

        err_set_errno(err, reason, "listen on %s port %d", options->address,
                      options->port);
        err->code = reason == EADDRINUSE                          ? ERR_BUSY
                    : reason == EADDRNOTAVAIL || reason == EACCES ? ERR_INVALID
                                                                  : ERR_IO;
        close(fd);
        return err->code;
    }
    *ret_port = ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port
                                                       : address.v6.sin6_port);
    *ret_fd = fd;
    return ERR_OK;
}

const char *request_header(const struct request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

struct list_header {
    const char *name;
    struct buf joint;
};

static enum MHD_Result join_line(void *arg, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    struct list_header *list = arg;

    (void)kind;
    if (strcasecmp(name, list->name) == 0) {
        buf_puts(&list->joint, list->joint.length ? ", " : "");
        buf_puts(&list->joint, value ? value : "");
    }
    return MHD_YES;
}

char *request_header_list(const struct request *r, const char *name)
{
    struct list_header list = { name, BUF_INIT };
    size_t length;

    if (!request_header(r, name)) {
        return NULL;
    }
    MHD_get_connection_values(r->connection, MHD_HEADER_KIND, join_line, &list);
    buf_putc(&list.joint, '\0');
    return buf_detach(&list.joint, &length);
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

void api_kick(struct api *api)
{
    api->kicked = true;
    if (!api->pumping) {
        api->hooks.kick(api->hooks.arg);
    }
}

static void *on_target(void *arg, const char *target, struct MHD_Connection *connection)
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
    r->peer->arrived_ms = clock_monotonic_ms();
    api->progress = true;
    api->requests++;
    return r;
}

static enum MHD_Result check_field(void *arg, enum MHD_ValueKind kind, const char *name,
                                   size_t name_length, const char *value,
                                   size_t value_length)
{
    (void)kind;
    head_field(arg, name, name_length, value ? value : name + name_length, value_length);
    return MHD_YES;
}

/* METHOD and VERSION point into the library's buffer, where the head began and where its
 * first line ended. */
static const char *head_problem(const struct request *r, const char *method,
                                const char *version)
{
    const union MHD_ConnectionInfo *size =
        MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    struct head head;

    head_begin(&head, version, MHD_get_version());
    MHD_get_connection_values_n(r->connection, MHD_HEADER_KIND, check_field, &head);
    return head_end(&head, (uintptr_t)method + size->header_size);
}

/* Of a library that takes more for the line of a chunk than it should. */
static const char *chunks_refused(struct request *r, const char *method)
{
    const union MHD_ConnectionInfo *size =
        MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

    return head_knows_places(MHD_get_version()) && request_header(r, "Transfer-Encoding")
               ? received_begin_chunks(&r->peer->received, method + size->header_size)
               : NULL;
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
    if (problem && strcmp(r->raw, "*") == 0) {
        problem = NULL;
    }
    if (!problem) {
        problem = head_problem(r, method, version);
    }
    if (!problem && !guard_admits(r)) {
        return reply_send(r);
    }
    if (!problem) {
        problem = chunks_refused(r, method);
    }
    if (problem) {
        reply_problem(r, PROBLEM_BAD_REQUEST, "%s", problem);
        return reply_send(r);
    }
    return MHD_YES;
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

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection,
                                  const char *url, const char *method,
                                  const char *version, const char *upload,
                                  size_t *upload_size, void **request)
{
    struct api *api = arg;
    struct request *r = *request;

    (void)url;
    if (r->phase == REQUEST_NEW) {
        api->progress = true;
        return begin(r, method, version);
    }
    if (r->phase == REQUEST_RECEIVING && r->peer->received.is_chunked) {
        const struct chunks *chunks = &r->peer->received.chunks;
        const char *problem =
            *upload_size > 0 ? chunks_problem(chunks) : chunks_end(chunks);

        if (problem) {
            return refuse_within_body(connection, PROBLEM_BAD_REQUEST, problem);
        }
    }
    if (*upload_size > 0) {
        size_t length = *upload_size;

        *upload_size = 0;
        r->peer->arrived_ms = clock_monotonic_ms();
        api->progress = true;
        return collect(r, upload, length);
    }
    if (r->phase == REQUEST_RECEIVING) {
        r->phase = REQUEST_HANDLED;
        r->peer->arrived_ms = 0;
        api->progress = true;
        connection_serve(&api->connections, r->peer);
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

static void on_completed(void *arg, struct MHD_Connection *connection, void **request,
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
    received_end(&r->peer->received);
    r->peer->arrived_ms = 0;
    api->progress = true;
    connection_await(&api->connections, r->peer, clock_monotonic_ms());
    request_keep(r, NULL, NULL);
    reply_release(&r->reply);
    problems_release(&r->problems);
    target_release(&r->target);
    buf_release(&r->body);
    free(r->raw);
    free(r);
    api->requests--;
}

static void on_connection(void *arg, struct MHD_Connection *connection,
                          void **socket_context, enum MHD_ConnectionNotificationCode what)
{
    struct api *api = arg;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
                     ->connect_fd;
        int size = SEND_BUFFER_BYTES;

        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
        *socket_context = connection_add(&api->connections, fd, clock_monotonic_ms());
    } else if (*socket_context) {
        connection_remove(&api->connections, *socket_context);
        *socket_context = NULL;
    }
}

/* The library's own strictness, where it has degrees: see api/http/head.h. */
#if MHD_VERSION >= 0x00097701
#define STRICTNESS MHD_OPTION_CLIENT_DISCIPLINE_LVL, 2
#else
#define STRICTNESS MHD_OPTION_STRICT_FOR_CLIENT, 1
#endif

static struct MHD_Daemon *start_library(struct api *api, int fd)
{
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, api,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_URI_LOG_CALLBACK, on_target, api,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, api, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, api, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)api->options.connection_limit + CONNECTION_RESERVE,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY_BYTES, STRICTNESS,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
}

static void kick(void *api)
{
    api_kick(api);
}

enum err_code api_open(const struct api_options *options, const struct api_hooks *hooks,
                       struct store *store, struct api **ret_api, struct err *err)
{
    struct api *api;
    int fd = -1;
    int port = 0;

    if (open_listener(options, &fd, &port, err) != ERR_OK) {
        return err->code;
    }
    api = xcalloc(1, sizeof *api);
    api->options = *options;
    api->stale_after_ms = options->stale_after_ms;
    api->options.address = xstrdup(options->address);
    api->options.version = xstrdup(options->version);
    api->hooks = *hooks;
    api->store = store;
    api->port = port;
    api->listen_fd = -1;
    connections_init(&api->connections);
    streams_init(&api->streams, store, kick, api);
    api->mhd = start_library(api, fd);
    if (!api->mhd) {
        close(fd);
        api_close(api);
        return err_set(err, ERR_INTERNAL, "the HTTP library does not start");
    }
    *ret_api = api;
    return ERR_OK;
}

int api_port(const struct api *api)
{
    return api->port;
}

int api_fd(const struct api *api)
{
    return MHD_get_daemon_info(api->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

/* When the library wants to run again, in milliseconds; -1: whenever.  Not at once if
 * that got it nowhere often: what it cannot go on with must not take a processor. */
static int64_t library_delay(struct api *api, int64_t now)
{
    enum { FRUITLESS_MAX = 100 };
    MHD_UNSIGNED_LONG_LONG delay;

    if (MHD_get_timeout(api->mhd, &delay) != MHD_YES) {
        delay = UINT64_MAX;
    }
    api->fruitless = delay == 0 && !api->progress ? api->fruitless + 1 : 0;
    api->progress = false;
    if (api->fruitless > FRUITLESS_MAX) {
        connections_drop_stuck(&api->connections, now);
        return 1;
    }
    return delay == UINT64_MAX ? -1 : (int64_t)delay;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a && (!b || a < b) ? a : b;
}

int64_t api_pump(struct api *api)
{
    int64_t now = clock_monotonic_ms();
    int64_t due;
    int64_t delay;
    unsigned open;

    api->pumping = true;
    api->kicked = false;
    connections_sweep(&api->connections, now);
    connections_look(&api->connections, now);
    due = streams_tick(&api->streams, now);
    MHD_run(api->mhd);
    connections_make_room(&api->connections, api->options.connection_limit,
                          CONNECTION_RESERVE / 2);
    due = earlier(due, api->connections.next_due_ms);
    if (api->connections.count > 0) {
        due = earlier(due, api->connections.next_look_ms);
    }
    delay = library_delay(api, now);
    if (delay >= 0) {
        due = earlier(due, now + delay);
    }
    open = MHD_get_daemon_info(api->mhd, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)
               ->num_connections;
    /* The listening socket, out of epoll at the limit, goes back only when the library
     * runs again after a client has left. */
    api->kicked |= open < api->last_connections;
    api->last_connections = open;
    if ((int)open > api->options.connection_limit) {
        due = earlier(due, now + LIMIT_TICK_MS);
    }
    api->pumping = false;
    if (api->kicked) {
        return 0;
    }
    return due == 0 ? -1 : due > now ? due - now : 0;
}

void api_events_changed(struct api *api)
{
    streams_changed(&api->streams);
}

void api_quiesce(struct api *api)
{
    if (!api->quiescing) {
        api->quiescing = true;
        api->listen_fd = MHD_quiesce_daemon(api->mhd);
        streams_end(&api->streams);
    }
}

void api_reconfigure(struct api *api, int64_t stale_after_ms)
{
    api->stale_after_ms = stale_after_ms;
    api->configured++;
}

int api_in_store(const struct api *api)
{
    return api->in_store;
}

bool api_idle(const struct api *api)
{
    return api->requests == 0 && api->in_store == 0 && !api->streams.reading;
}

/* The library aborts the process when it is stopped with suspended connections. */
static void finish_requests(struct api *api)
{
    enum { LAST_RUNS = 4 };

    api->closing = true; /* the last runs read what clients go on asking */
    while (api->in_store > 0 || api->streams.reading) {
        struct pollfd ready = { .fd = store_fd(api->store), .events = POLLIN };

        poll(&ready, 1, 100);
        store_dispatch(api->store);
    }
    streams_end(&api->streams);
    for (int i = 0; i < LAST_RUNS; i++) {
        api_pump(api);
    }
}

void api_close(struct api *api)
{
    if (!api) {
        return;
    }
    if (api->mhd) {
        api_quiesce(api);
        finish_requests(api);
        MHD_stop_daemon(api->mhd);
    }
    if (api->listen_fd >= 0) {
        close(api->listen_fd);
    }
    streams_release(&api->streams);
    cache_release(&api->cache);
    free((char *)api->options.address);
    free((char *)api->options.version);
    free(api);
}
