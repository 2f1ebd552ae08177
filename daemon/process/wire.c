#include "daemon/process/wire.h"

#include <stdbool.h>
#include <string.h>

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

/* jansson recurses, so depth is bounded before it sees the text. */
static bool is_too_deep(const char *text, size_t length)
{
    bool in_string = false;
    int depth = 0;

    for (size_t i = 0; i < length; i++) {
        char c = text[i];

        if (in_string) {
            if (c == '\\') {
                i++;
            } else if (c == '"') {
                in_string = false;
            }
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > WIRE_DEPTH_MAX) {
                return true;
            }
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return false;
}

json_t *wire_parse(const char *text, size_t length, struct err *err)
{
    json_error_t error;
    json_t *json;

    if (is_too_deep(text, length)) {
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

/* Length of the well-formed UTF-8 sequence at TEXT (table 3-7 of the Unicode standard),
 * 0 if there is none. */
static size_t sequence_length(const unsigned char *text, size_t length)
{
    unsigned char first = text[0];
    unsigned char low = 0x80, high = 0xbf;
    size_t need;

    if (first < 0x80) {
        return first ? 1 : 0;
    }
    if (first < 0xc2 || first > 0xf4) {
        return 0;
    }
    need = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : low;
    high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : high;
    if (length < need || text[1] < low || text[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < need; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return need;
}

json_t *wire_string(const char *text, size_t length)
{
    struct buf clean = BUF_INIT;
    json_t *json;

    for (size_t i = 0; i < length;) {
        size_t step = sequence_length((const unsigned char *)text + i, length - i);

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
        size_t step = sequence_length((const unsigned char *)text + i, length - i);

        if (!step) {
            text[i] = '?';
        }
        i += step ? step : 1;
    }
}
