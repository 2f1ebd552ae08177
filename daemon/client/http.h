/* Requests to a service, one connection each: what the commands that ask one are made of.
 *
 * HTTP/1.1 as RFC 9112 has it, as far as a client needs it that closes after each answer:
 * bodies of a stated length and chunked ones.  No TLS: a service listens on a loopback
 * address, and what lies in between (ssh, a proxy) has programs of its own. */
#ifndef DAEMON_CLIENT_HTTP_H
#define DAEMON_CLIENT_HTTP_H

#include <stdbool.h>

#include "daemon/base/buf.h"
#include "daemon/base/err.h"

enum { SERVER_TEXT_SIZE = 256, ANSWER_TYPE_SIZE = 128 };

/* Where a service is: of "http://host:port" or "http://[::1]:port". */
struct server {
    char host[SERVER_TEXT_SIZE];
    char port[8];
    char authority[SERVER_TEXT_SIZE + 16]; /* "host:port", as the request says it */
    bool is_own; /* this command started it: nobody repairs it while it runs */
};

/* Of URL; NULL: of the variable REPROD_SERVER, else http://127.0.0.1:7357.  ERR_INVALID:
 * it is no such address. */
enum err_code server_read(const char *url, struct server *ret_server, struct err *err);

struct answer {
    int status;
    char type[ANSWER_TYPE_SIZE]; /* without parameters */
    struct buf body;
};

/* Asks SERVER for PATH, which begins with "/".  BODY, JSON, is sent with it where it is
 * not NULL; KEY (or NULL) is the request's Idempotency-Key.  ERR_IO, ERR_TIMEOUT: the
 * service cannot be reached, or went away before the answer was whole; ERR_PROTOCOL: what
 * answers is no HTTP.  Release with answer_release, after an error, too. */
enum err_code server_ask(const struct server *server, const char *method,
                         const char *path, const char *body, const char *key,
                         struct answer *ret_answer, struct err *err);
void answer_release(struct answer *answer);

/* TEXT as a part of a path or of a query (RFC 3986).  Caller frees. */
char *url_escape(const char *text);

/* What a whole answer says, for tests: BYTES of LENGTH up to the end of the connection.
 */
enum err_code answer_read(const char *bytes, size_t length, struct answer *ret_answer,
                          struct err *err);

#endif
