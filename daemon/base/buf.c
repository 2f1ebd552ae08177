#include "daemon/base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

static void reserve(struct buf *buf, size_t more)
{
    size_t need = buf->length + more + 1;

    if (need > buf->capacity) {
        size_t capacity = buf->capacity ? buf->capacity * 2 : 256;

        buf->capacity = capacity > need ? capacity : need;
        buf->data = xrealloc(buf->data, buf->capacity);
    }
}

void buf_add(struct buf *buf, const void *data, size_t length)
{
    reserve(buf, length);
    if (length) {
        memcpy(buf->data + buf->length, data, length);
    }
    buf->length += length;
    buf->data[buf->length] = '\0';
}

void buf_puts(struct buf *buf, const char *text)
{
    buf_add(buf, text, strlen(text));
}

void buf_putc(struct buf *buf, char c)
{
    reserve(buf, 1);
    buf->data[buf->length++] = c;
    buf->data[buf->length] = '\0';
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args;
    int length;

    reserve(buf, 0);
    va_start(args, format);
    length =
        vsnprintf(buf->data + buf->length, buf->capacity - buf->length, format, args);
    va_end(args);
    if (length <= 0) {
        buf->data[buf->length] = '\0';
        return;
    }
    if ((size_t)length >= buf->capacity - buf->length) {
        reserve(buf, (size_t)length);
        va_start(args, format);
        vsnprintf(buf->data + buf->length, (size_t)length + 1, format, args);
        va_end(args);
    }
    buf->length += (size_t)length;
}

char *buf_detach(struct buf *buf, size_t *ret_length)
{
    char *data;

    reserve(buf, 0);
    buf->data[buf->length] = '\0';
    data = buf->data;
    if (ret_length) {
        *ret_length = buf->length;
    }
    *buf = (struct buf)BUF_INIT;
    return data;
}

void buf_release(struct buf *buf)
{
    free(buf->data);
    *buf = (struct buf)BUF_INIT;
}
