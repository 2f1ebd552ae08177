#include "daemon/delivery/sending.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

struct sending {
    struct url url;
    struct networks allowed;
    struct buf request, answer;
    struct tls *tls;
    void (*done)(void *arg, const struct sending_result *result); /* NULL: it was */
    void *arg;
    uv_loop_t *loop;
    uv_getaddrinfo_t resolve;
    struct addrinfo *addresses, *next; /* NEXT: to be tried */
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_timer_t deadline;
    int references; /* the timer, the connection, the question for the addresses */
    uint64_t timeout_ms;
    bool resolving, late; /* LATE: the time is over, and the resolver has not answered */
    bool connected_once, open, sent;
    struct sending_result result;
    char part[4096];
};

static void release(struct sending *s)
{
    if (--s->references > 0) {
        return;
    }
    uv_freeaddrinfo(s->addresses);
    tls_free(s->tls);
    buf_release(&s->request);
    buf_release(&s->answer);
    free(s);
}

static void was_closed(uv_handle_t *handle)
{
    release(handle->data);
}

static void close_all(struct sending *s)
{
    if (s->open) {
        s->open = false;
        uv_close((uv_handle_t *)&s->tcp, was_closed);
    }
    uv_cancel((uv_req_t *)&s->resolve); /* it may be over, or not be stopped any more */
    uv_close((uv_handle_t *)&s->deadline, was_closed);
}

static void finish(struct sending *s)
{
    void (*done)(void *arg, const struct sending_result *result) = s->done;

    if (done) {
        s->done = NULL;
        close_all(s);
        done(s->arg, &s->result);
    }
}

void sending_abort(struct sending *s)
{
    if (s->done) {
        s->done = NULL;
        close_all(s);
    }
}

static void fail(struct sending *s, const char *cause)
{
    if (cause != s->result.cause) {
        copy_text(s->result.cause, sizeof s->result.cause, cause);
    }
    s->result.head.status = 0;
    finish(s);
}

static void fail_with(struct sending *s, const char *what, int rc)
{
    char cause[WEBHOOK_CAUSE_SIZE];

    snprintf(cause, sizeof cause, "%s: %s", what, uv_strerror(rc));
    fail(s, cause);
}

static void too_late(uv_timer_t *timer)
{
    struct sending *s = timer->data;

    /* The loop has few threads for questions to a resolver, and one that hangs cannot be
     * ended: the next try of the same receiver would take another. */
    if (s->resolving) {
        s->late = true;
        return;
    }
    /* A cause that is there already is that of an address that failed at once. */
    fail(s, s->connected_once    ? "no answer in time"
            : s->result.cause[0] ? s->result.cause
                                 : "no connection in time");
}

/* Writing */

struct writing {
    uv_write_t write;
    struct buf bytes;
};

/* Where it fails, reading does, too, or an answer is there already. */
static void was_written(uv_write_t *write, int status)
{
    struct writing *w = (struct writing *)write;

    (void)status;
    buf_release(&w->bytes);
    free(w);
}

/* Takes over what BYTES holds. */
static void write_out(struct sending *s, struct buf *bytes)
{
    struct writing *w;
    uv_buf_t buf = uv_buf_init(bytes->data, (unsigned)bytes->length);

    if (bytes->length == 0) {
        return;
    }
    w = xcalloc(1, sizeof *w);
    w->bytes = *bytes;
    *bytes = (struct buf)BUF_INIT;
    if (uv_write(&w->write, (uv_stream_t *)&s->tcp, &buf, 1, was_written) != 0) {
        buf_release(&w->bytes);
        free(w);
    }
}

static void flush_tls(struct sending *s)
{
    struct buf bytes;

    tls_output(s->tls, &bytes);
    write_out(s, &bytes);
}

/* Reading */

static void look_at_answer(struct sending *s)
{
    switch (answer_head_read(s->answer.data ? s->answer.data : "", s->answer.length,
                             &s->result.head)) {
    case ANSWER_HEAD_WHOLE:
        s->result.cause[0] = '\0';
        finish(s);
        break;
    case ANSWER_HEAD_BAD:
        fail(s, "what answers speaks no HTTP/1");
        break;
    case ANSWER_HEAD_MORE:
        break;
    }
}

/* As far as it goes: the handshake, the request, the answer. */
static void go_on_with_tls(struct sending *s)
{
    char cause[TLS_CAUSE_SIZE];
    bool readable = true;

    if (!s->sent) {
        enum tls_state state = tls_shake(s->tls, cause);

        if (state == TLS_READY) {
            s->sent = true;
            readable = tls_write(s->tls, s->request.data, s->request.length);
        }
        flush_tls(s);
        if (state == TLS_FAILED) {
            fail(s, cause);
            return;
        }
    }
    if (s->sent && readable) {
        readable = tls_read(s->tls, &s->answer);
        look_at_answer(s);
    }
    if (s->done && !readable) {
        fail(s, "TLS: the connection ended before an answer");
    }
}

static void give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct sending *s = handle->data;

    (void)suggested;
    *buf = uv_buf_init(s->part, sizeof s->part);
}

static void was_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct sending *s = stream->data;

    if (!s->done || n == 0) {
        return;
    }
    if (n == UV_EOF) {
        fail(s, "the connection ended before an answer");
    } else if (n < 0) {
        fail_with(s, "no answer", (int)n);
    } else if (s->tls) {
        tls_received(s->tls, buf->base, (size_t)n);
        go_on_with_tls(s);
    } else {
        buf_add(&s->answer, buf->base, (size_t)n);
        look_at_answer(s);
    }
}

/* Connecting */

static void connect_next(struct sending *s);

static void closed_for_next(uv_handle_t *handle)
{
    struct sending *s = handle->data;

    if (s->done) {
        connect_next(s);
    }
    release(s);
}

static void was_connected(uv_connect_t *connect, int status)
{
    struct sending *s = connect->data;

    if (!s->done) {
        return;
    }
    if (status != 0) {
        snprintf(s->result.cause, sizeof s->result.cause, "no connection: %s",
                 uv_strerror(status));
        s->open = false;
        uv_close((uv_handle_t *)&s->tcp, closed_for_next);
        return;
    }
    s->connected_once = true;
    uv_tcp_nodelay(&s->tcp, 1);
    uv_read_start((uv_stream_t *)&s->tcp, give_room, was_read);
    if (s->tls) {
        go_on_with_tls(s);
    } else {
        write_out(s, &s->request);
    }
}

/* Looked at is what is connected to: a name that leads elsewhere the second time leads to
 * the same here. */
static const struct addrinfo *next_allowed(struct sending *s)
{
    char refusal[REFUSAL_SIZE];

    while (s->next) {
        const struct addrinfo *address = s->next;

        s->next = address->ai_next;
        if (!address_refusal(address->ai_addr, &s->allowed, refusal)) {
            return address;
        }
        snprintf(s->result.cause, sizeof s->result.cause,
                 "refused: %s (webhook_networks allows others)", refusal);
    }
    return NULL;
}

static void connect_next(struct sending *s)
{
    const struct addrinfo *address = next_allowed(s);
    int rc;

    if (!address) {
        fail(s, s->result.cause[0] ? s->result.cause : "the host has no address");
        return;
    }
    rc = uv_tcp_init(s->loop, &s->tcp);
    if (rc != 0) {
        fail_with(s, "no connection", rc);
        return;
    }
    s->references++;
    s->open = true;
    s->tcp.data = s;
    s->connect.data = s;
    rc = uv_tcp_connect(&s->connect, &s->tcp, address->ai_addr, was_connected);
    if (rc != 0) {
        was_connected(&s->connect, rc);
    }
}

static void was_resolved(uv_getaddrinfo_t *resolve, int status, struct addrinfo *found)
{
    struct sending *s = resolve->data;

    s->resolving = false;
    s->addresses = found;
    s->next = found;
    if (s->done && status != 0) {
        fail_with(s, "the host cannot be resolved", status);
    } else if (s->done && s->late) {
        fail(s, "the host was not resolved in time");
    } else if (s->done) {
        connect_next(s);
    }
    release(s);
}

static void could_not_start(uv_timer_t *timer)
{
    struct sending *s = timer->data;

    fail(s, s->result.cause);
}

static void begin_connecting(uv_timer_t *timer)
{
    struct sending *s = timer->data;

    uv_timer_start(timer, too_late, s->timeout_ms, 0);
    connect_next(s);
}

/* What is numeric needs no resolver, and so does not wait behind names whose resolver
 * hangs.  In any case what comes first comes from the timer: DONE is called later. */
static void find_addresses(struct sending *s)
{
    static const struct addrinfo numeric = { .ai_socktype = SOCK_STREAM,
                                             .ai_flags = AI_NUMERICHOST };
    static const struct addrinfo any = { .ai_socktype = SOCK_STREAM };
    int rc;

    if (getaddrinfo(s->url.host, s->url.port, &numeric, &s->addresses) == 0) {
        s->next = s->addresses;
        uv_timer_start(&s->deadline, begin_connecting, 0, 0);
        return;
    }
    s->addresses = NULL;
    rc = uv_getaddrinfo(s->loop, &s->resolve, was_resolved, s->url.host, s->url.port,
                        &any);
    if (rc != 0) {
        snprintf(s->result.cause, sizeof s->result.cause,
                 "the host cannot be resolved: %s", uv_strerror(rc));
        uv_timer_start(&s->deadline, could_not_start, 0, 0);
        return;
    }
    s->resolving = true;
    s->references++;
    uv_timer_start(&s->deadline, too_late, s->timeout_ms, 0);
}

static void put_request(struct sending *s, const struct sending_request *request)
{
    buf_printf(&s->request,
               "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %zu\r\n"
               "Connection: close\r\n%s\r\n%s",
               s->url.path, s->url.authority, strlen(request->body), request->headers,
               request->body);
}

struct sending *
sending_start(uv_loop_t *loop, const struct sending_request *request,
              void (*done)(void *arg, const struct sending_result *result), void *arg)
{
    struct sending *s = xcalloc(1, sizeof *s);

    s->loop = loop;
    s->url = request->url;
    s->allowed = request->allowed;
    s->done = done;
    s->arg = arg;
    s->references = 1;
    put_request(s, request);
    if (s->url.tls) {
        s->tls = tls_new(request->trust, s->url.host);
    }
    uv_timer_init(loop, &s->deadline);
    s->deadline.data = s;
    s->resolve.data = s;
    s->timeout_ms = (uint64_t)request->timeout_ms;
    find_addresses(s);
    return s;
}
