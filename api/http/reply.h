/* How a handler ends: with a reply, at once or after its work in the store.
 *
 * reply_json, reply_text, reply_csv, reply_file, reply_shared, reply_stream and
 * reply_problem are the only ways a request ends; each fills r->reply and touches nothing
 * else, so handlers call them both on the loop and on reader threads.  reply_send hands
 * the result to the library (loop thread).
 *
 * A GET that succeeds carries a strong ETag, the hash of its body, and answers 304 to an
 * If-None-Match that has it. */
#ifndef API_HTTP_REPLY_H
#define API_HTTP_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "api/http/request.h"
#include "daemon/base/err.h"
#include "daemon/base/json_out.h"

/* Takes what OUT holds.  If the client wants text or CSV, the same content is tabulated
 * with the columns of the route. */
void reply_json(struct request *r, unsigned status, struct json_out *out);

/* Take what BUF holds; status 200.  Nothing in a text acts on the terminal that shows it
 * (text_show); what would break a line is for who made the line to spell. */
void reply_text(struct request *r, struct buf *buf);
void reply_csv(struct request *r, struct buf *buf);

/* BODY is valid always. */
void reply_file(struct request *r, const char *content_type, const char *body,
                size_t length);

/* Takes over the caller's reference. */
void reply_shared(struct request *r, struct cached *cached, const char *content_type);

/* Takes over the caller's reference. */
void reply_stream(struct request *r, struct MHD_Response *response,
                  const char *content_type);
void reply_nothing(struct request *r, unsigned status);

void reply_problem(struct request *r, enum problem_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Refuses with everything in r->problems. */
void reply_problems(struct request *r);

/* For an error that a store function returned: 404, 409, 422, 503, or 500 and a line in
 * the log. */
void reply_error(struct request *r, const struct err *err);

/* Adds a header; NAME is static. */
void reply_header(struct request *r, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Suspends the request and runs FN(tx, request) on a reader thread, where the request is
 * FN's alone.  Then, if FN succeeded without having replied, THEN on the loop, which
 * replies or goes on with more work.  A failure of FN is the reply (reply_error).  THEN
 * may be NULL if FN replies.  A heavy read may be that of another request for the same
 * (api/http/flight.h): then neither is called. */
void request_read(struct request *r, store_fn fn, void (*then)(struct request *r));

/* As above, on the writer thread; THEN follows when the write is durable. */
void request_write(struct request *r, store_fn fn, void (*then)(struct request *r));

enum MHD_Result reply_send(struct request *r);
void reply_release(struct reply *reply);

/* The strong validator of a body: its hash, in quotes. */
void etag_of(const char *body, size_t length, char ret_etag[ETAG_SIZE]);

/* Whether the If-None-Match value LIST names ETAG (RFC 9110, 13.1.2), weak or not.  Pure.
 */
bool etag_listed(const char *list, const char *etag);

/* Whether the If-Match value LIST names ETAG (13.1.1): a weak tag is no match.  Pure. */
bool etag_listed_strongly(const char *list, const char *etag);

#endif
