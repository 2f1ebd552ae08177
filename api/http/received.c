#include "api/http/received.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "api/http/behind.h"
#include "daemon/base/mem.h"

/* By descriptor; other threads have none. */
static _Thread_local struct {
    struct slot {
        struct received *received;
    } * list;
    int room, count;
} watched;

void received_watch(int fd, struct received *received)
{
    if (fd >= watched.room) {
        int room = 2 * fd + 16;

        watched.list = xrealloc(watched.list, (size_t)room * sizeof(struct slot));
        memset(watched.list + watched.room, 0,
               (size_t)(room - watched.room) * sizeof(struct slot));
        watched.room = room;
    }
    watched.list[fd].received = received;
    watched.count++;
}

void received_forget(int fd)
{
    watched.list[fd].received = NULL;
    if (--watched.count == 0) {
        free(watched.list);
        watched.list = NULL;
        watched.room = 0;
    }
}

const char *received_begin_chunks(struct received *r, const char *body)
{
    uintptr_t begin = (uintptr_t)r->at, here = (uintptr_t)body;

    if (!r->any) {
        return NULL;
    }
    if (!r->at || here < begin || here - begin > r->length) {
        return "a body in chunks came before the reply to the request before it";
    }
    r->is_chunked = true;
    chunks_begin(&r->chunks);
    chunks_take(&r->chunks, body, r->length - (here - begin));
    return chunks_problem(&r->chunks);
}

void received_end(struct received *r)
{
    r->at = NULL;
    r->is_chunked = false;
}

typedef ssize_t (*recv_fn)(int fd, void *data, size_t size, int flags);

static recv_fn real_recv(void)
{
    static _Thread_local recv_fn found;

    if (!found) {
        behind_ours("recv", &found);
    }
    return found;
}

ssize_t recv(int fd, void *data, size_t size, int flags)
{
    ssize_t got = real_recv()(fd, data, size, flags);
    struct received *r = fd >= 0 && fd < watched.room ? watched.list[fd].received : NULL;

    if (got > 0 && r && !(flags & MSG_PEEK)) {
        r->any = true;
        r->at = data;
        r->length = (size_t)got;
        if (r->is_chunked) {
            chunks_take(&r->chunks, data, (size_t)got);
        }
    }
    return got;
}
