#include "api/http/reply.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/connection.h"
#include "api/http/flight.h"
#include "api/http/library_errors.h"
#include "api/http/routes.h"
#include "api/render/tabulate.h"
#include "daemon/base/array.h"
#include "daemon/base/clock.h"
#include "daemon/base/hash.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"

void etag_of(const char *body, size_t length, char ret_etag[ETAG_SIZE])
{
    snprintf(ret_etag, ETAG_SIZE, "\"%016llx\"",
             (unsigned long long)hash_long(body, length));
}

/* What may stand BEFORE a tag that counts, in addition to the beginning. */
static bool is_listed(const char *list, const char *etag, const char *before)
{
    size_t length = strlen(etag);

    list += strspn(list, " \t");
    if (*list == '*') {
        return true;
    }
    for (const char *at = strstr(list, etag); at; at = strstr(at + length, etag)) {
        bool starts = at == list || strchr(before, at[-1]) != NULL;

        if (starts && strchr(" \t,", at[length])) {
            return true;
        }
    }
    return false;
}

bool etag_listed(const char *list, const char *etag)
{
    return is_listed(list, etag, " \t,/");
}

bool etag_listed_strongly(const char *list, const char *etag)
{
    return is_listed(list, etag, " \t,");
}

static struct reply *begin(struct request *r, unsigned status, const char *content_type)
{
    r->reply.ready = true;
    r->reply.status = status;
    r->reply.content_type = content_type;
    return &r->reply;
}

static void set_body(struct request *r, unsigned status, const char *content_type,
                     struct buf *buf)
{
    struct reply *reply = begin(r, status, content_type);

    free(reply->body);
    reply->body = buf_detach(buf, &reply->length);
    if (status == 200) {
        etag_of(reply->body, reply->length, reply->etag);
    }
}

void reply_json(struct request *r, unsigned status, struct json_out *out)
{
    bool tabular = r->format == FORMAT_TEXT || r->format == FORMAT_CSV;

    buf_putc(&out->buf, '\n');
    if (tabular) {
        struct buf text = BUF_INIT;

        tabulate(out->buf.data, r->route->columns, r->format == FORMAT_CSV, &text);
        buf_release(&out->buf);
        set_body(r, status, format_content_type(r->format), &text);
    } else {
        set_body(r, status, "application/json", &out->buf);
    }
}

void reply_text(struct request *r, struct buf *buf)
{
    struct buf shown = BUF_INIT;

    text_show(&shown, buf->data ? buf->data : "", buf->length, "\n\t");
    buf_release(buf);
    set_body(r, 200, format_content_type(FORMAT_TEXT), &shown);
}

void reply_csv(struct request *r, struct buf *buf)
{
    set_body(r, 200, format_content_type(FORMAT_CSV), buf);
}

void reply_file(struct request *r, const char *content_type, const char *body,
                size_t length)
{
    struct reply *reply = begin(r, 200, content_type);

    reply->body = (char *)body;
    reply->borrowed = true;
    reply->length = length;
    etag_of(body, length, reply->etag);
}

void reply_shared(struct request *r, struct cached *cached, const char *content_type)
{
    begin(r, 200, content_type)->shared = cached;
    memcpy(r->reply.etag, cached->etag, sizeof r->reply.etag);
}

void reply_stream(struct request *r, struct MHD_Response *response,
                  const char *content_type)
{
    begin(r, 200, content_type)->stream = response;
}

void reply_nothing(struct request *r, unsigned status)
{
    struct reply *reply = begin(r, status, NULL);

    reply->borrowed = true;
    reply->body = (char *)"";
}

static void set_problem(struct request *r, enum problem_kind kind, const char *detail)
{
    struct json_out out = JSON_OUT_INIT;
    unsigned status = problem_type(kind)->status;

    problem_render(&out, kind, detail, &r->problems);
    buf_putc(&out.buf, '\n');
    set_body(r, status, "application/problem+json", &out.buf);
    if (status == 503 || status == 429) {
        reply_header(r, "Retry-After", status == 429 ? "60" : "1");
    }
}

void reply_problem(struct request *r, enum problem_kind kind, const char *format, ...)
{
    char detail[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    set_problem(r, kind, detail);
}

void reply_problems(struct request *r)
{
    const struct problem *first = &r->problems.items[0];
    const char *where = first->parameter ? first->parameter : first->pointer;
    int others = r->problems.count + r->problems.more - 1;
    enum problem_kind kind = problems_kind(&r->problems);

    if (others == 0) {
        reply_problem(r, kind, "%s%s%s", where, *where ? ": " : "", first->detail);
    } else {
        reply_problem(r, kind, "%s%s%s, and %d more", where, *where ? ": " : "",
                      first->detail, others);
    }
}

/* With what is known to be wrong, which the error of one read seldom says. */
static void reply_storage(struct request *r, const char *message)
{
    static const enum health_condition told[] = { HEALTH_STORAGE, HEALTH_DATABASE };
    const struct health *health = r->api->hooks.health(r->api->hooks.arg);
    struct buf words = BUF_INIT;

    buf_puts(&words, message);
    for (int i = 0; i < COUNT_OF(told); i++) {
        const char *cause = health->conditions[told[i]].cause;

        if (cause[0] && strcmp(cause, message) != 0) {
            buf_printf(&words, "; %s: %s", health_name(told[i]), cause);
        }
    }
    reply_problem(r, PROBLEM_STORAGE, "%s", words.data);
    buf_release(&words);
}

void reply_error(struct request *r, const struct err *err)
{
    switch (err->code) {
    case ERR_NOT_FOUND:
        reply_problem(r, PROBLEM_NOT_FOUND, "%s", err->message);
        break;
    case ERR_GONE:
        reply_problem(r, PROBLEM_FOLDED, "%s", err->message);
        break;
    case ERR_CONFLICT:
        reply_problem(r, PROBLEM_CONFLICT, "%s", err->message);
        break;
    case ERR_BUSY:
    case ERR_TIMEOUT:
        reply_problem(r, PROBLEM_BUSY, "%s", err->message);
        break;
    case ERR_IO:
    case ERR_CORRUPT:
        log_error("api: %s %s: %s", r->method, r->target.path, err->message);
        reply_storage(r, err->message);
        break;
    default:
        log_error("api: %s %s: %s", r->method, r->target.path, err->message);
        reply_problem(r, PROBLEM_INTERNAL, "an internal error (%s)", err_name(err->code));
    }
}

void reply_header(struct request *r, const char *name, const char *format, ...)
{
    struct reply *reply = &r->reply;
    va_list args;

    if (reply->header_count == REPLY_HEADERS_MAX) {
        return;
    }
    va_start(args, format);
    reply->headers[reply->header_count].value = xvasprintf(format, args);
    va_end(args);
    reply->headers[reply->header_count++].name = name;
}

/* A response of our own, or one more reference to a shared one. */
static struct MHD_Response *make_response(struct reply *reply)
{
    struct MHD_Response *response;

    if (reply->shared) {
        return reply->shared->response;
    }
    if (reply->stream) {
        return reply->stream;
    }
    response = MHD_create_response_from_buffer(reply->length, reply->body,
                                               reply->borrowed ? MHD_RESPMEM_PERSISTENT
                                                               : MHD_RESPMEM_MUST_FREE);
    if (!response) {
        abort();
    }
    reply->borrowed = true; /* the response frees it */
    return response;
}

static void add_headers(struct request *r, struct MHD_Response *response)
{
    const struct reply *reply = &r->reply;

    if (reply->content_type) {
        MHD_add_response_header(response, "Content-Type", reply->content_type);
    }
    if (reply->etag[0]) {
        MHD_add_response_header(response, "ETag", reply->etag);
    }
    if (r->route && r->route->formats[0] != FORMAT_NONE &&
        r->route->formats[1] != FORMAT_NONE) {
        MHD_add_response_header(response, "Vary", "Accept");
    }
    MHD_add_response_header(response, "Cache-Control", "no-cache");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    for (int i = 0; i < reply->header_count; i++) {
        MHD_add_response_header(response, reply->headers[i].name,
                                reply->headers[i].value);
    }
}

enum MHD_Result reply_send(struct request *r)
{
    struct reply *reply = &r->reply;
    struct MHD_Response *response = make_response(reply);
    char *known = request_header_list(r, "If-None-Match");
    unsigned status = reply->status;
    enum MHD_Result result;

    /* A shared response gets its headers once. */
    if (!reply->shared || !MHD_get_response_header(response, "ETag")) {
        add_headers(r, response);
    }
    if (status == 200 && reply->etag[0] && known && strcmp(r->method, "GET") == 0 &&
        etag_listed(known, reply->etag)) {
        status = MHD_HTTP_NOT_MODIFIED; /* with the 200's response: its length is right */
    }
    free(known);
    if (reply->stream) {
        connection_serve(&r->api->connections, r->peer);
    } else {
        connection_take(&r->api->connections, r->peer, clock_monotonic_ms());
    }
    result = queue_reply(r->connection, status, response);
    if (!reply->shared && !reply->stream) {
        MHD_destroy_response(response);
    }
    return result;
}

void reply_release(struct reply *reply)
{
    if (!reply->borrowed) {
        free(reply->body);
    }
    for (int i = 0; i < reply->header_count; i++) {
        free(reply->headers[i].value);
    }
    cached_unref(reply->shared);
    if (reply->stream) {
        MHD_destroy_response(reply->stream);
    }
    *reply = (struct reply){ .ready = false };
}

static void suspend(struct request *r)
{
    r->api->in_store++;
    if (!r->suspended) {
        r->suspended = true;
        MHD_suspend_connection(r->connection);
    }
}

static void resume(struct request *r)
{
    if (r->suspended) {
        r->suspended = false;
        MHD_resume_connection(r->connection);
        api_kick(r->api);
    }
}

static void resume_joined(struct request *r)
{
    r->api->in_store--;
    resume(r);
}

static void on_done(void *arg, const struct err *result)
{
    struct request *r = arg;

    r->api->in_store--;
    r->work = NULL;
    if (result->code != ERR_OK) {
        reply_release(&r->reply);
        (r->failed ? r->failed : reply_error)(r, result);
    } else if (!r->reply.ready && r->then) {
        r->then(r);
    }
    if (r->work) {
        return; /* went on with more work */
    }
    if (!r->reply.ready) {
        reply_problem(r, PROBLEM_INTERNAL, "no reply was made");
    }
    flight_land(r, resume_joined);
    resume(r);
}

/* Requests that are in the store have their connections, and make room for nobody. */
static bool refuse_more(struct request *r)
{
    struct api *api = r->api;

    if (api->closing) {
        api->refused++;
        reply_problem(r, PROBLEM_BUSY, "the service is stopping");
        return true;
    }
    if (4 * api->in_store < 3 * api->options.connection_limit) {
        return false;
    }
    api->refused++;
    reply_problem(r, PROBLEM_BUSY, "%d other requests are waiting for the database",
                  api->in_store);
    return true;
}

void request_read(struct request *r, store_fn fn, void (*then)(struct request *r))
{
    enum err_code (*const read)(struct store *, store_fn, void *, store_done,
                                struct err *) = r->heavy ? store_read_heavy : store_read;
    struct err err = { .code = ERR_OK };

    r->then = then;
    r->generation = store_generation(r->api->store);
    r->configuration = r->api->configured;
    if (!r->suspended && refuse_more(r)) {
        return;
    }
    if (r->heavy && !r->suspended && flight_join(r)) {
        suspend(r);
        return;
    }
    if (read(r->api->store, fn, r, on_done, &err) != ERR_OK) {
        r->api->refused += err.code == ERR_BUSY;
        reply_error(r, &err);
        flight_land(r, resume_joined);
        return;
    }
    r->work = fn;
    suspend(r);
}

void request_write(struct request *r, store_fn fn, void (*then)(struct request *r))
{
    if (!r->suspended && refuse_more(r)) {
        return;
    }
    r->then = then;
    r->work = fn;
    suspend(r);
    store_write(r->api->store, fn, r, on_done);
}
