#include "api/http/library_errors.h"

#include <sys/socket.h>

#include "api/http/behind.h"
#include "daemon/base/buf.h"
#include "daemon/base/json_out.h"
#include "daemon/jobs/problem.h"

typedef enum MHD_Result (*queue_fn)(struct MHD_Connection *connection, unsigned status,
                                    struct MHD_Response *response);

static queue_fn real_queue(void)
{
    static queue_fn found;

    if (!found) {
        behind_ours("MHD_queue_response", &found);
    }
    return found;
}

enum MHD_Result queue_reply(struct MHD_Connection *connection, unsigned status,
                            struct MHD_Response *response)
{
    return real_queue()(connection, status, response);
}

static enum problem_kind kind_of(unsigned status)
{
    switch (status) {
    case 413: /* the names in the library's header change from version to version */
        return PROBLEM_TOO_LARGE;
    case 414:
    case 431:
        return PROBLEM_HEAD_TOO_LARGE;
    case 505:
        return PROBLEM_VERSION;
    default:
        return status < 500 ? PROBLEM_BAD_REQUEST : PROBLEM_INTERNAL;
    }
}

static void render(enum problem_kind kind, const char *detail, struct buf *ret_text)
{
    const struct problem_type *type = problem_type(kind);
    struct json_out out = JSON_OUT_INIT;

    problem_render(&out, kind, detail, NULL);
    buf_putc(&out.buf, '\n');
    buf_printf(ret_text,
               "HTTP/1.1 %u %s\r\nContent-Type: application/problem+json\r\n"
               "Content-Length: %zu\r\nCache-Control: no-cache\r\n"
               "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
               type->status, MHD_get_reason_phrase_for(type->status), out.buf.length);
    buf_add(ret_text, out.buf.data, out.buf.length);
    buf_release(&out.buf);
}

/* What is not read makes the kernel reset the connection when it is closed, and the reply
 * may go with it. */
static void discard(int fd)
{
    enum { DISCARD_MAX = 64 };
    char ignored[16 << 10];

    for (int i = 0; i < DISCARD_MAX; i++) {
        if (recv(fd, ignored, sizeof ignored, MSG_DONTWAIT) <= 0) {
            return;
        }
    }
}

/* The library closes the connection because this fails.  Whatever it sent before was sent
 * whole, and what does not fit into the socket now is not sent. */
enum MHD_Result refuse_within_body(struct MHD_Connection *connection,
                                   enum problem_kind kind, const char *detail)
{
    int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
                 ->connect_fd;
    struct buf text = BUF_INIT;

    render(kind, detail, &text);
    send(fd, text.data, text.length, MSG_DONTWAIT | MSG_NOSIGNAL);
    buf_release(&text);
    shutdown(fd, SHUT_WR);
    discard(fd);
    return MHD_NO;
}

/* The library's own call. */
enum MHD_Result MHD_queue_response(struct MHD_Connection *connection,
                                   unsigned status_code, struct MHD_Response *response)
{
    (void)response;
    return refuse_within_body(connection, kind_of(status_code),
                              "what was sent is no request that can be read; the "
                              "connection ends");
}
