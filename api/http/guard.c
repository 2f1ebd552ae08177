#include "api/http/guard.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/reply.h"

enum { NAME_MAX_LENGTH = 255, LOOPBACK_NET = 127 };

/* The length of the loopback's name with which AUTHORITY begins; 0: of another. */
static size_t loopback_length(const char *authority)
{
    static const char *const names[] = { "localhost", "[::1]" };
    size_t digits = strspn(authority, "0123456789.");
    char quad[sizeof "127.255.255.255"];
    struct in_addr address;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncasecmp(authority, names[i], strlen(names[i])) == 0) {
            return strlen(names[i]);
        }
    }
    if (digits >= sizeof quad) {
        return 0;
    }
    memcpy(quad, authority, digits);
    quad[digits] = '\0';
    return inet_pton(AF_INET, quad, &address) == 1 &&
                   ntohl(address.s_addr) >> 24 == LOOPBACK_NET
               ? digits
               : 0;
}

bool guard_host_is_loopback(const char *authority)
{
    size_t length = loopback_length(authority);
    const char *port = authority + length;

    if (length == 0 || *port == '\0') {
        return length > 0;
    }
    return *port == ':' && port[1] && strlen(port) <= 6 &&
           port[1 + strspn(port + 1, "0123456789")] == '\0';
}

bool guard_origin_is_own(const char *origin, const char *host)
{
    return strncasecmp(origin, "http://", 7) == 0 && strcasecmp(origin + 7, host) == 0;
}

/* What the headers say, counted. */
struct framing {
    int lengths, encodings, hosts, origins, keys;
    const char *length, *encoding, *host, *origin;
};

static enum MHD_Result count_header(void *arg, enum MHD_ValueKind kind, const char *key,
                                    const char *value)
{
    struct framing *f = arg;

    (void)kind;
    if (strcasecmp(key, "Content-Length") == 0) {
        f->lengths++;
        f->length = value;
    } else if (strcasecmp(key, "Transfer-Encoding") == 0) {
        f->encodings++;
        f->encoding = value;
    } else if (strcasecmp(key, "Host") == 0) {
        f->hosts++;
        f->host = value;
    } else if (strcasecmp(key, "Idempotency-Key") == 0) {
        f->keys++;
    } else if (strcasecmp(key, "Origin") == 0) {
        f->origins++;
        f->origin = value;
    }
    return MHD_YES;
}

static const char *framing_problem(const struct framing *f)
{
    if (f->lengths > 1) {
        return "Content-Length is given more than once";
    }
    if (f->lengths && f->encodings) {
        return "Content-Length and Transfer-Encoding exclude each other";
    }
    if (f->encodings > 1 || (f->encoding && strcasecmp(f->encoding, "chunked") != 0)) {
        return "the only Transfer-Encoding is chunked";
    }
    if (f->length &&
        (!*f->length || strspn(f->length, "0123456789") != strlen(f->length))) {
        return "Content-Length is not a number";
    }
    if (f->hosts > 1) {
        return "Host is given more than once";
    }
    if (f->keys > 1) {
        return "Idempotency-Key is given more than once";
    }
    return f->origins > 1 ? "Origin is given more than once" : NULL;
}

/* A client is judged by the hosts that it names: Host, and that of the target, if any. */
static bool admits_names(struct request *r, const struct framing *f)
{
    const char *named[] = { f->host, r->target.authority };

    for (int i = 0; i < 2; i++) {
        if (named[i] && !guard_host_is_loopback(named[i])) {
            reply_problem(r, PROBLEM_FOREIGN_HOST,
                          "this server answers to localhost, 127.0.0.0/8 and [::1] "
                          "only, not to '%.*s'",
                          NAME_MAX_LENGTH, named[i]);
            return false;
        }
    }
    if (f->origin && !(f->host && guard_origin_is_own(f->origin, f->host))) {
        reply_problem(r, PROBLEM_FOREIGN_ORIGIN,
                      "pages of '%.*s' may not use this interface", NAME_MAX_LENGTH,
                      f->origin);
        return false;
    }
    return true;
}

bool guard_admits(struct request *r)
{
    struct framing f = { 0 };
    const char *problem;

    MHD_get_connection_values(r->connection, MHD_HEADER_KIND, count_header, &f);
    problem = framing_problem(&f);
    if (problem) {
        reply_problem(r, PROBLEM_BAD_REQUEST, "%s", problem);
        return false;
    }
    if (!admits_names(r, &f)) {
        return false;
    }
    if (f.length && strtoull(f.length, NULL, 10) > REQUEST_BODY_MAX) {
        reply_problem(r, PROBLEM_TOO_LARGE, "a body has at most %d bytes",
                      REQUEST_BODY_MAX);
        return false;
    }
    return true;
}
