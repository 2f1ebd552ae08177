#include "workloads/worker/emit.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "workloads/worker/status.h"

void emit_init(struct emit *emit, int fd)
{
    emit->fd = fd;
    emit->length = 0;
    emit->too_long = false;
}

static void put(struct emit *emit, const char *bytes, size_t count)
{
    /* One byte is kept for the newline. */
    if (emit->too_long || count > EMIT_LINE_MAX - 1 - emit->length) {
        emit->too_long = true;
        return;
    }
    memcpy(emit->line + emit->length, bytes, count);
    emit->length += count;
}

__attribute__((format(printf, 2, 3))) static void put_format(struct emit *emit,
                                                             const char *format, ...)
{
    char text[512];
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    put(emit, text, (size_t)length);
}

/* How many bytes the UTF-8 character at S has, 0 if it is none (RFC 3629: no overlong
 * forms, no surrogates, nothing above U+10FFFF).  S ends in NUL, which continues nothing.
 */
static size_t utf8_length(const unsigned char *s)
{
    if (s[0] < 0x80) {
        return 1;
    }
    if (s[0] < 0xc2 || s[0] > 0xf4 || (s[1] & 0xc0) != 0x80) {
        return 0;
    }
    if (s[0] < 0xe0) {
        return 2;
    }
    if ((s[2] & 0xc0) != 0x80 || (s[0] == 0xe0 && s[1] < 0xa0) ||
        (s[0] == 0xed && s[1] > 0x9f)) {
        return 0;
    }
    if (s[0] < 0xf0) {
        return 3;
    }
    if ((s[3] & 0xc0) != 0x80 || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f)) {
        return 0;
    }
    return 4;
}

static void put_escaped(struct emit *emit, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    while (*s) {
        size_t length = utf8_length(s);

        if (length == 0) {
            put(emit, "\\ufffd", 6);
            length = 1;
        } else if (*s == '"' || *s == '\\') {
            put_format(emit, "\\%c", *s);
        } else if (*s < 0x20 || *s == 0x7f) {
            put_format(emit, "\\u%04x", *s);
        } else {
            put(emit, (const char *)s, length);
        }
        s += length;
    }
}

static void put_key(struct emit *emit, const char *key)
{
    char last = emit->length > 0 ? emit->line[emit->length - 1] : '{';

    if (last != '{' && last != '[') {
        put(emit, ",", 1);
    }
    if (key) {
        put(emit, "\"", 1);
        put_escaped(emit, key);
        put(emit, "\":", 2);
    }
}

void emit_begin(struct emit *emit)
{
    emit->length = 0;
    emit->too_long = false;
    put(emit, "{", 1);
}

static int wait_writable(int fd)
{
    struct pollfd waited = { .fd = fd, .events = POLLOUT };

    return poll(&waited, 1, -1) < 0 && errno != EINTR ? errno : 0;
}

static int write_all(int fd, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t written = write(fd, bytes, count);

        if (written >= 0) {
            bytes += written;
            count -= (size_t)written;
        } else if (errno == EAGAIN) {
            int error = wait_writable(fd);

            if (error) {
                return error;
            }
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

int emit_end(struct emit *emit)
{
    put(emit, "}", 1);
    if (emit->too_long) {
        return EMSGSIZE;
    }
    emit->line[emit->length++] = '\n';
    return write_all(emit->fd, emit->line, emit->length);
}

void emit_send(struct emit *emit)
{
    int error = emit_end(emit);

    if (error) {
        fprintf(stderr, "reprod-worker: cannot write events to descriptor %d: %s\n",
                emit->fd, strerror(error));
        _exit(STATUS_OUTPUT);
    }
}

void emit_string(struct emit *emit, const char *key, const char *value)
{
    if (!value) {
        emit_null(emit, key);
        return;
    }
    put_key(emit, key);
    put(emit, "\"", 1);
    put_escaped(emit, value);
    put(emit, "\"", 1);
}

void emit_int(struct emit *emit, const char *key, int64_t value)
{
    put_key(emit, key);
    put_format(emit, "%" PRId64, value);
}

void emit_bool(struct emit *emit, const char *key, bool value)
{
    put_key(emit, key);
    put_format(emit, "%s", value ? "true" : "false");
}

void emit_null(struct emit *emit, const char *key)
{
    put_key(emit, key);
    put(emit, "null", 4);
}

void emit_fixed(struct emit *emit, const char *key, double value, int decimals)
{
    if (!isfinite(value)) {
        emit_null(emit, key);
        return;
    }
    put_key(emit, key);
    put_format(emit, "%.*f", decimals, value);
}

void emit_double(struct emit *emit, const char *key, double value)
{
    if (isnan(value)) {
        emit_string(emit, key, "nan");
    } else if (isinf(value)) {
        emit_string(emit, key, value < 0 ? "-inf" : "inf");
    } else {
        put_key(emit, key);
        put_format(emit, "%.17g", value);
    }
}

void emit_bits(struct emit *emit, const char *key, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    put_key(emit, key);
    put_format(emit, "\"%016" PRIx64 "\"", bits);
}

void emit_digest(struct emit *emit, const char *key, struct digest digest)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(digest, hex);
    emit_string(emit, key, hex);
}

void emit_base64(struct emit *emit, const char *key, const void *bytes, size_t count)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *from = bytes;

    put_key(emit, key);
    put(emit, "\"", 1);
    for (size_t i = 0; i < count; i += 3) {
        size_t left = count - i;
        unsigned group = (unsigned)from[i] << 16 |
                         (left > 1 ? (unsigned)from[i + 1] << 8 : 0) |
                         (left > 2 ? from[i + 2] : 0U);
        const char text[] = { digits[group >> 18], digits[group >> 12 & 63],
                              left > 1 ? digits[group >> 6 & 63] : '=',
                              left > 2 ? digits[group & 63] : '=' };

        put(emit, text, sizeof text);
    }
    put(emit, "\"", 1);
}

void emit_object(struct emit *emit, const char *key)
{
    put_key(emit, key);
    put(emit, "{", 1);
}

void emit_object_end(struct emit *emit)
{
    put(emit, "}", 1);
}

void emit_array(struct emit *emit, const char *key)
{
    put_key(emit, key);
    put(emit, "[", 1);
}

void emit_array_end(struct emit *emit)
{
    put(emit, "]", 1);
}
