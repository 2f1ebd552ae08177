/* A growing byte buffer, for building replies, tables and lines. */
#ifndef DAEMON_BASE_BUF_H
#define DAEMON_BASE_BUF_H

#include <stddef.h>

struct buf {
    char *data; /* NUL-terminated once anything was added; NULL while empty */
    size_t length;
    size_t capacity;
};

#define BUF_INIT                                                                         \
    {                                                                                    \
        NULL, 0, 0                                                                       \
    }

void buf_add(struct buf *buf, const void *data, size_t length);
void buf_puts(struct buf *buf, const char *text);
void buf_putc(struct buf *buf, char c);
void buf_printf(struct buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Hands the bytes to the caller, who frees them; BUF is empty afterwards.  Never NULL. */
char *buf_detach(struct buf *buf, size_t *ret_length);

/* Frees the bytes; BUF is empty and usable afterwards. */
void buf_release(struct buf *buf);

#endif
