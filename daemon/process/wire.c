#include "daemon/process/wire.h"

#include <stdbool.h>
#include <string.h>

#include "daemon/base/json_in.h"
#include "daemon/base/text.h"

void wire_lines_init(struct wire_lines *lines, size_t max)
{
    *lines = (struct wire_lines){ BUF_INIT, max, 0 };
}

static int complete_line(struct wire_lines *lines, const char *text, size_t length,
                         wire_line_fn *visit, void *arg)
{
    int rc;

    if (lines->partial.length + length > lines->max) {
        return ERR_TOO_LARGE;
    }
    lines->count++;
    if (lines->partial.length == 0) {
        return visit(arg, text, length);
    }
    buf_add(&lines->partial, text, length);
    rc = visit(arg, lines->partial.data, lines->partial.length);
    lines->partial.length = 0;
    return rc;
}

int wire_lines_feed(struct wire_lines *lines, const char *data, size_t length,
                    wire_line_fn *visit, void *arg)
{
    const char *newline;

    while (length && (newline = memchr(data, '\n', length))) {
        size_t text = (size_t)(newline - data);
        int rc = complete_line(lines, data, text, visit, arg);

        if (rc != 0) {
            return rc;
        }
        data += text + 1;
        length -= text + 1;
    }
    if (lines->partial.length + length > lines->max) {
        return ERR_TOO_LARGE;
    }
    if (length) {
        buf_add(&lines->partial, data, length);
    }
    return 0;
}

size_t wire_lines_rest(const struct wire_lines *lines)
{
    return lines->partial.length;
}

void wire_lines_release(struct wire_lines *lines)
{
    buf_release(&lines->partial);
}

json_t *wire_parse(const char *text, size_t length, struct err *err)
{
    json_error_t error;
    json_t *json;

    if (in_depth(text, length) > WIRE_DEPTH_MAX) {
        err_set(err, ERR_PROTOCOL, "nested more than %d deep", WIRE_DEPTH_MAX);
        return NULL;
    }
    json = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!json) {
        enum json_error_code code = json_error_code(&error);

        err_set(err, ERR_PROTOCOL, "%s",
                code == json_error_invalid_utf8    ? "not UTF-8"
                : code == json_error_duplicate_key ? "a key appears twice in an object"
                                                   : "not JSON");
        return NULL;
    }
    if (!json_is_object(json)) {
        json_decref(json);
        err_set(err, ERR_PROTOCOL, "not a JSON object");
        return NULL;
    }
    return json;
}

/* Of the well-formed UTF-8 sequence at TEXT; 0 if there is none, or a NUL. */
static size_t sequence_length(const char *text, size_t length)
{
    return *text ? text_sequence(text, length) : 0;
}

json_t *wire_string(const char *text, size_t length)
{
    struct buf clean = BUF_INIT;
    json_t *json;

    for (size_t i = 0; i < length;) {
        size_t step = sequence_length(text + i, length - i);

        if (step) {
            buf_add(&clean, text + i, step);
        } else {
            buf_puts(&clean, "\xef\xbf\xbd");
        }
        i += step ? step : 1;
    }
    json = json_stringn_nocheck(clean.data ? clean.data : "", clean.length);
    buf_release(&clean);
    return json;
}

void wire_clean(char *text)
{
    size_t length = strlen(text);

    for (size_t i = 0; i < length;) {
        size_t step = sequence_length(text + i, length - i);

        if (!step) {
            text[i] = '?';
        }
        i += step ? step : 1;
    }
}
