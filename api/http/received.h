/* The bytes of connections as they came.
 *
 * The library reads them into its own buffer, and of a body in chunks it shows only what
 * these held.  It reads through recv, for which the dynamic linker takes ours (ELF's
 * rules for symbols: the executable's come first).  Ours calls the C library's, and looks
 * at what came.  Where the linker does not do so, nothing is seen and nothing is refused:
 * a test shows it.  Connections belong to the thread that watches them. */
#ifndef API_HTTP_RECEIVED_H
#define API_HTTP_RECEIVED_H

#include <stdbool.h>
#include <stddef.h>

#include "api/http/chunks.h"

/* Part of a connection. */
struct received {
    bool any; /* something came through here */
    const char
        *at; /* what came last, in the library's buffer; NULL: it was moved since */
    size_t length;
    bool is_chunked; /* the body that is being received */
    struct chunks chunks;
};

/* What comes from FD is RECEIVED, which stays where it is until it is forgotten. */
void received_watch(int fd, struct received *received);
void received_forget(int fd);

/* A body in chunks begins at BODY, in the library's buffer.  What is wrong, in words;
 * NULL: nothing so far. */
const char *received_begin_chunks(struct received *received, const char *body);

/* The request is over: what is left in the buffer is moved. */
void received_end(struct received *received);

#endif
