#include "daemon/base/json_out.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"

static void add_control(struct buf *buf, int c)
{
    static const char short_names[] = "btn\0fr"; /* of 8 to 13 */

    if (c >= 8 && c <= 13 && short_names[c - 8]) {
        buf_putc(buf, '\\');
        buf_putc(buf, short_names[c - 8]);
    } else {
        buf_printf(buf, "\\u%04x", (unsigned)c);
    }
}

static void add_string(struct buf *buf, const char *value, size_t length)
{
    const unsigned char *text = (const unsigned char *)value;

    buf_putc(buf, '"');
    for (size_t i = 0; i < length;) {
        size_t run = i;
        size_t n = 1;
        int control;

        while (run < length && text[run] >= 0x20 && text[run] < 0x7f &&
               text[run] != '"' && text[run] != '\\') {
            run++;
        }
        buf_add(buf, value + i, run - i);
        i = run;
        if (i == length) {
            break;
        }
        if (text[i] == '"' || text[i] == '\\') {
            buf_putc(buf, '\\');
            buf_putc(buf, value[i]);
        } else if ((n = text_sequence(value + i, length - i)) == 0) {
            buf_puts(buf, "\xef\xbf\xbd");
            n = 1;
        } else if ((control = text_control(value + i, n)) >= 0) {
            add_control(buf, control);
        } else {
            buf_add(buf, value + i, n);
        }
        i += n;
    }
    buf_putc(buf, '"');
}

/* Outside of its strings, JSON has no character above DEL. */
static void add_json(struct buf *buf, const char *json)
{
    size_t left = strlen(json);

    for (size_t n; left > 0; json += n, left -= n) {
        int control = text_control(json, left);

        if (control >= 0x7f) {
            n = text_sequence(json, left);
            add_control(buf, control);
            continue;
        }
        for (n = 1; n < left && (unsigned char)json[n] < 0x7f; n++) {
        }
        buf_add(buf, json, n);
    }
}

static void begin(struct json_out *out, const char *key)
{
    if (out->comma) {
        buf_putc(&out->buf, ',');
    }
    if (key) {
        add_string(&out->buf, key, strlen(key));
        buf_putc(&out->buf, ':');
    }
    out->comma = true;
}

void out_open(struct json_out *out, const char *key, char bracket)
{
    begin(out, key);
    buf_putc(&out->buf, bracket);
    out->comma = false;
}

void out_close(struct json_out *out, char bracket)
{
    buf_putc(&out->buf, bracket);
    out->comma = true;
}

bool out_object(struct json_out *out, const char *key, bool is)
{
    if (is) {
        out_open(out, key, '{');
    } else {
        out_null(out, key);
    }
    return is;
}

void out_bytes(struct json_out *out, const char *key, const char *value, size_t length)
{
    begin(out, key);
    add_string(&out->buf, value, length);
}

void out_null(struct json_out *out, const char *key)
{
    begin(out, key);
    buf_puts(&out->buf, "null");
}

void out_text(struct json_out *out, const char *key, const char *value)
{
    if (value) {
        out_bytes(out, key, value, strlen(value));
    } else {
        out_null(out, key);
    }
}

void out_name(struct json_out *out, const char *key, const char *value)
{
    out_text(out, key, value[0] ? value : NULL);
}

/* Pages have thousands of numbers, and printf takes its time. */
void out_int(struct json_out *out, const char *key, int64_t value)
{
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    char digits[20];
    size_t at = sizeof digits;

    begin(out, key);
    do {
        digits[--at] = (char)('0' + left % 10);
        left /= 10;
    } while (left);
    if (value < 0) {
        buf_putc(&out->buf, '-');
    }
    buf_add(&out->buf, digits + at, sizeof digits - at);
}

void out_real(struct json_out *out, const char *key, double value)
{
    if (!isfinite(value)) {
        out_null(out, key);
        return;
    }
    begin(out, key);
    buf_printf(&out->buf, "%.9g", value);
}

void out_bool(struct json_out *out, const char *key, bool value)
{
    begin(out, key);
    buf_puts(&out->buf, value ? "true" : "false");
}

void out_time(struct json_out *out, const char *key, int64_t wall_ms)
{
    char text[CLOCK_RFC3339_SIZE];

    if (wall_ms == 0) {
        out_null(out, key);
        return;
    }
    clock_rfc3339(wall_ms, text);
    out_text(out, key, text);
}

void out_ms(struct json_out *out, const char *key, int64_t ns)
{
    begin(out, key);
    buf_printf(&out->buf, "%" PRId64 ".%06" PRId64, ns / 1000000, ns % 1000000);
}

void out_int_if(struct json_out *out, const char *key, bool is_known, int64_t value)
{
    if (is_known) {
        out_int(out, key, value);
    } else {
        out_null(out, key);
    }
}

void out_bool_if(struct json_out *out, const char *key, bool is_known, bool value)
{
    if (is_known) {
        out_bool(out, key, value);
    } else {
        out_null(out, key);
    }
}

void out_ms_if(struct json_out *out, const char *key, bool is_known, int64_t ns)
{
    if (is_known) {
        out_ms(out, key, ns);
    } else {
        out_null(out, key);
    }
}

void out_json(struct json_out *out, const char *key, const char *json)
{
    begin(out, key);
    add_json(&out->buf, json && json[0] ? json : "null");
}

void out_format(struct json_out *out, const char *key, const char *format, ...)
{
    char *text;
    va_list args;

    va_start(args, format);
    text = xvasprintf(format, args);
    va_end(args);
    out_text(out, key, text);
    free(text);
}
