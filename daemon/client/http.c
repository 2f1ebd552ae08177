#include "daemon/client/http.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"

/* An answer that takes longer is none: all of the service's come within seconds. */
enum { PATIENCE_S = 60, READ_SIZE = 65536, ANSWER_MAX = 1 << 28 };

static const char DEFAULT_SERVER[] = "http://127.0.0.1:7357";

static enum err_code refuse_url(const char *url, const char *why, struct err *err)
{
    return err_set(err, ERR_INVALID, "'%.200s' %s: give http://HOST:PORT, such as %s",
                   url, why, DEFAULT_SERVER);
}

static bool is_port(const char *text)
{
    char *end;
    long port = strtol(text, &end, 10);

    return text[0] >= '0' && text[0] <= '9' && !*end && port > 0 && port < 65536;
}

enum err_code server_read(const char *url, struct server *ret_server, struct err *err)
{
    const char *own = url ? url : getenv("REPROD_SERVER");
    const char *at, *end, *port;
    size_t length;

    own = own && own[0] ? own : DEFAULT_SERVER;
    if (strncasecmp(own, "https://", 8) == 0) {
        return refuse_url(own, "asks for TLS, which this command does not speak", err);
    }
    at = strncasecmp(own, "http://", 7) == 0 ? own + 7 : own;
    length = strcspn(at, "/");
    if (at[length] && strcmp(at + length, "/") != 0) {
        return refuse_url(own, "has a path", err);
    }
    end = at + length;
    port = at[0] == '[' ? memchr(at, ']', length) : at;
    port = port ? memchr(port, ':', (size_t)(end - port)) : NULL;
    *ret_server = (struct server){ .port = "" };
    if (!port || length >= SERVER_TEXT_SIZE || port == at) {
        return refuse_url(own, "has no port", err);
    }
    copy_text(ret_server->authority, length + 1, at);
    copy_text(ret_server->host, (size_t)(port - at) + 1, at);
    if (end - port > 6) {
        return refuse_url(own, "has no port that exists", err);
    }
    copy_text(ret_server->port, (size_t)(end - port), port + 1);
    if (at[0] == '[') {
        copy_text(ret_server->host, (size_t)(port - at) - 1, at + 1);
    }
    return is_port(ret_server->port) ? ERR_OK
                                     : refuse_url(own, "has no port that exists", err);
}

static enum err_code unreachable(const struct server *server, int number, struct err *err)
{
    return err_set_errno(err, number, "no service answers at http://%s",
                         server->authority);
}

static enum err_code connect_to(const struct server *server, int *ret_fd, struct err *err)
{
    struct addrinfo wanted = { .ai_socktype = SOCK_STREAM }, *found, *one;
    struct timeval patience = { .tv_sec = PATIENCE_S };
    int code = getaddrinfo(server->host, server->port, &wanted, &found);
    int number = ECONNREFUSED;

    if (code != 0) {
        return err_set(err, ERR_IO, "no service can be found at http://%s: %s",
                       server->authority, gai_strerror(code));
    }
    *ret_fd = -1;
    for (one = found; one && *ret_fd < 0; one = one->ai_next) {
        int fd =
            socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);

        if (fd < 0) {
            number = errno;
            continue;
        }
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        if (connect(fd, one->ai_addr, one->ai_addrlen) == 0) {
            *ret_fd = fd;
        } else {
            number = errno;
            close(fd);
        }
    }
    freeaddrinfo(found);
    return *ret_fd >= 0 ? ERR_OK : unreachable(server, number, err);
}

static enum err_code send_all(const struct server *server, int fd,
                              const struct buf *request, struct err *err)
{
    size_t sent = 0;

    while (sent < request->length) {
        ssize_t n = send(fd, request->data + sent, request->length - sent, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        /* It may have answered all the same: a refusal, before it read the rest. */
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) {
            return ERR_OK;
        }
        if (n < 0) {
            return unreachable(server, errno, err);
        }
        sent += (size_t)n;
    }
    return ERR_OK;
}

static enum err_code receive_all(const struct server *server, int fd, struct buf *bytes,
                                 struct err *err)
{
    static char part[READ_SIZE];
    int64_t latest = clock_monotonic_ms() + PATIENCE_S * INT64_C(1000);

    for (;;) {
        ssize_t n = recv(fd, part, sizeof part, 0);
        bool late = clock_monotonic_ms() > latest;

        if (n < 0 && errno == EINTR && !late) {
            continue;
        }
        if (n == 0) {
            return ERR_OK;
        }
        if (late || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))) {
            return err_set(err, ERR_TIMEOUT,
                           "the service at http://%s did not answer within %d s",
                           server->authority, PATIENCE_S);
        }
        if (n < 0) {
            return unreachable(server, errno, err);
        }
        if (bytes->length + (size_t)n > ANSWER_MAX) {
            return err_set(err, ERR_TOO_LARGE, "the answer is larger than %d MiB",
                           ANSWER_MAX >> 20);
        }
        buf_add(bytes, part, (size_t)n);
    }
}

/* The value of header NAME, which ends at *ret_length; NULL: there is none. */
static const char *header(const char *head, const char *name, size_t *ret_length)
{
    size_t length = strlen(name);
    const char *line = strstr(head, "\r\n");

    for (; line; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, length) == 0 && line[length] == ':') {
            const char *value = line + length + 1;

            value += strspn(value, " \t");
            *ret_length = strcspn(value, "\r\n");
            return value;
        }
    }
    return NULL;
}

static enum err_code cut_off(struct err *err)
{
    return err_set(err, ERR_IO, "the service went away before its answer was whole");
}

/* RFC 9112, 7.1. */
static enum err_code read_chunks(const char *at, const char *end, struct buf *body,
                                 struct err *err)
{
    for (;;) {
        char *behind;
        const char *line = memchr(at, '\n', (size_t)(end - at));
        unsigned long size = line ? strtoul(at, &behind, 16) : 0;

        if (!line) {
            return cut_off(err);
        }
        if (behind == at) {
            return err_set(err, ERR_PROTOCOL, "the answer has a chunk without a size");
        }
        at = line + 1;
        if (size == 0) {
            return ERR_OK;
        }
        if (size > ANSWER_MAX || (size_t)(end - at) < size + 2) {
            return cut_off(err);
        }
        buf_add(body, at, size);
        at += size + 2;
    }
}

static enum err_code read_body(const char *head, const char *at, const char *end,
                               struct buf *body, struct err *err)
{
    size_t length;
    const char *coding = header(head, "Transfer-Encoding", &length);
    const char *stated;

    if (coding && length == 7 && strncasecmp(coding, "chunked", 7) == 0) {
        return read_chunks(at, end, body, err);
    }
    stated = header(head, "Content-Length", &length);
    length = stated ? strtoul(stated, NULL, 10) : (size_t)(end - at);
    if (coding || length > (size_t)(end - at)) {
        return cut_off(err);
    }
    buf_add(body, at, length);
    return ERR_OK;
}

enum err_code answer_read(const char *bytes, size_t length, struct answer *ret_answer,
                          struct err *err)
{
    const char *end = length ? memmem(bytes, length, "\r\n\r\n", 4) : NULL;
    enum err_code code;
    const char *type;
    size_t size;
    char *head;

    *ret_answer = (struct answer){ .status = 0 };
    if (length == 0) {
        return cut_off(err);
    }
    if (length < 12 || strncmp(bytes, "HTTP/1.", 7) != 0 ||
        sscanf(bytes + 8, " %3d", &ret_answer->status) != 1) {
        return err_set(err, ERR_PROTOCOL, "what answers there does not speak HTTP");
    }
    if (!end) {
        return cut_off(err);
    }
    head = xstrndup(bytes, (size_t)(end - bytes) + 2);
    type = header(head, "Content-Type", &size);
    if (type) {
        size_t cut = strcspn(type, "; \r\n");

        copy_text(ret_answer->type,
                  cut + 1 < ANSWER_TYPE_SIZE ? cut + 1 : ANSWER_TYPE_SIZE, type);
    }
    code = read_body(head, end + 4, bytes + length, &ret_answer->body, err);
    free(head);
    return code;
}

static void write_request(const struct server *server, const char *method,
                          const char *path, const char *body, const char *key,
                          struct buf *request)
{
    buf_printf(request,
               "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: reprod/" REPROD_VERSION
               "\r\nConnection: close\r\n",
               method, path, server->authority);
    if (key) {
        buf_printf(request, "Idempotency-Key: %s\r\n", key);
    }
    if (body) {
        buf_printf(request, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                   strlen(body));
    }
    buf_printf(request, "\r\n%s", body ? body : "");
}

enum err_code server_ask(const struct server *server, const char *method,
                         const char *path, const char *body, const char *key,
                         struct answer *ret_answer, struct err *err)
{
    struct buf request = BUF_INIT, bytes = BUF_INIT;
    enum err_code code;
    int fd;

    *ret_answer = (struct answer){ .status = 0 };
    code = connect_to(server, &fd, err);
    if (code != ERR_OK) {
        return code;
    }
    write_request(server, method, path, body, key, &request);
    code = send_all(server, fd, &request, err);
    code = code == ERR_OK ? receive_all(server, fd, &bytes, err) : code;
    code = code == ERR_OK ? answer_read(bytes.data, bytes.length, ret_answer, err) : code;
    close(fd);
    buf_release(&request);
    buf_release(&bytes);
    return code;
}

void answer_release(struct answer *answer)
{
    buf_release(&answer->body);
}

char *url_escape(const char *text)
{
    struct buf escaped = BUF_INIT;

    for (const char *at = text; *at; at++) {
        if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~",
                   *at)) {
            buf_putc(&escaped, *at);
        } else {
            buf_printf(&escaped, "%%%02X", (unsigned char)*at);
        }
    }
    return buf_detach(&escaped, NULL);
}
