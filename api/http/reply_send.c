#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/request.h"
#include "api/http/routes.h"
#include "daemon/base/clock.h"

void etag_of(const char *body, size_t length, char ret_etag[ETAG_SIZE])
{
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a, 64 bits */

    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ (unsigned char)body[i]) * 0x100000001b3;
    }
    snprintf(ret_etag, ETAG_SIZE, "\"%016llx\"", (unsigned long long)hash);
}

bool etag_listed(const char *list, const char *etag)
{
    size_t length = strlen(etag);

    list += strspn(list, " \t");
    if (*list == '*') {
        return true;
    }
    for (const char *at = strstr(list, etag); at; at = strstr(at + length, etag)) {
        bool starts = at == list || strchr(" \t,/", at[-1]) != NULL;

        if (starts && strchr(" \t,", at[length])) {
            return true;
        }
    }
    return false;
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
    const char *known = request_header(r, "If-None-Match");
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
    connection_expect(&r->api->connections, r->peer, clock_monotonic_ms(),
                      reply->stream ? 0 : CONNECTION_SEND_MS);
    result = MHD_queue_response(r->connection, status, response);
    if (!reply->shared && !reply->stream) {
        MHD_destroy_response(response);
    }
    return result;
}
