#include "api/http/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/params.h"
#include "api/http/reply.h"
#include "daemon/base/mem.h"

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void cursor_encode(char kind, const char *key, char ret_cursor[CURSOR_SIZE])
{
    char plain[CURSOR_KEY_SIZE + 2];
    size_t length = (size_t)snprintf(plain, sizeof plain, "%c:%s", kind, key);
    char *to = ret_cursor;
    uint32_t bits = 0;
    int have = 0;

    for (size_t i = 0; i < length; i++) {
        bits = bits << 8 | (unsigned char)plain[i];
        for (have += 8; have >= 6; have -= 6) {
            *to++ = alphabet[bits >> (have - 6) & 63];
        }
    }
    if (have > 0) {
        *to++ = alphabet[bits << (6 - have) & 63];
    }
    *to = '\0';
}

int cursor_decode(char kind, const char *cursor, char ret_key[CURSOR_KEY_SIZE])
{
    char plain[CURSOR_SIZE];
    size_t length = 0;
    uint32_t bits = 0;
    int have = 0;

    if (strlen(cursor) >= CURSOR_SIZE) {
        return -1;
    }
    for (; *cursor; cursor++) {
        const char *digit = strchr(alphabet, *cursor);

        if (!digit) {
            return -1;
        }
        bits = bits << 6 | (uint32_t)(digit - alphabet);
        have += 6;
        if (have >= 8) {
            have -= 8;
            plain[length++] = (char)(bits >> have & 255);
        }
    }
    plain[length] = '\0';
    if (length < 3 || length >= CURSOR_KEY_SIZE + 2 || plain[0] != kind ||
        plain[1] != ':' || strlen(plain) != length) {
        return -1;
    }
    memcpy(ret_key, plain + 2, length - 1);
    return 0;
}

static void refuse_cursor(struct request *r)
{
    problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, "cursor",
                           "is not a cursor of this list; take it from its 'next'");
}

/* "" if it is not given. */
static void param_cursor(struct request *r, char kind, char ret_key[CURSOR_KEY_SIZE])
{
    const char *text = request_parameter(r, "cursor");

    ret_key[0] = '\0';
    if (text && cursor_decode(kind, text, ret_key) != 0) {
        refuse_cursor(r);
    }
}

void param_cursor_id(struct request *r, char kind, char ret_id[ID_SIZE])
{
    char key[CURSOR_KEY_SIZE];

    ret_id[0] = '\0';
    param_cursor(r, kind, key);
    if (key[0] && !id_valid(key)) {
        refuse_cursor(r);
    } else {
        copy_text(ret_id, ID_SIZE, key);
    }
}

int64_t param_cursor_number(struct request *r, char kind)
{
    char key[CURSOR_KEY_SIZE];
    int64_t number;

    param_cursor(r, kind, key);
    number = key[0] ? parse_id(key) : 0;
    if (number < 0) {
        refuse_cursor(r);
        return 0;
    }
    return number;
}

void param_cursor_pair(struct request *r, char kind, int64_t *ret_first,
                       int64_t *ret_second)
{
    char key[CURSOR_KEY_SIZE];
    char *dot;

    *ret_first = *ret_second = 0;
    param_cursor(r, kind, key);
    if (!key[0]) {
        return;
    }
    dot = strchr(key, '.');
    if (dot) {
        *dot = '\0';
        *ret_first = parse_id(key);
        *ret_second = parse_id(dot + 1);
    }
    if (*ret_first < 1 || *ret_second < 1) {
        refuse_cursor(r);
    }
}

static void page_free(void *state)
{
    struct page *page = state;

    if (page->release) {
        page->release(state);
    }
    buf_release(&page->out.buf);
    free(state);
}

void *page_new(struct request *r, size_t size, char kind)
{
    struct page *page = xcalloc(1, size);

    request_keep(r, page, page_free);
    page->kind = kind;
    page->limit = param_limit(r);
    return page;
}

int page_rows(const struct page *page)
{
    return page->limit + 1;
}

bool page_has_room(struct page *page)
{
    return page->offered++ < page->limit;
}

bool page_takes(struct page *page, const char *format, ...)
{
    va_list args;

    if (!page_has_room(page)) {
        return false;
    }
    va_start(args, format);
    vsnprintf(page->last, sizeof page->last, format, args);
    va_end(args);
    return true;
}

void list_open(struct json_out *out)
{
    out_open(out, NULL, '{');
    out_open(out, "items", '[');
}

void list_reply(struct request *r, struct json_out *out)
{
    out_close(out, ']');
    out_null(out, "next");
    out_close(out, '}');
    reply_json(r, 200, out);
}

void page_reply(struct request *r, struct page *page)
{
    bool more = page->offered > page->limit;

    out_close(&page->out, ']');
    page_end(r, &page->out, page->kind, more ? page->last : NULL);
    out_close(&page->out, '}');
    reply_json(r, 200, &page->out);
}

/* Appends TEXT with everything but unreserved characters percent-encoded. */
static void add_encoded(struct buf *buf, const char *text)
{
    for (; *text; text++) {
        bool plain = (*text >= '0' && *text <= '9') || (*text >= 'A' && *text <= 'Z') ||
                     (*text >= 'a' && *text <= 'z') || strchr("-._~", *text);

        if (plain) {
            buf_putc(buf, *text);
        } else {
            buf_printf(buf, "%%%02X", (unsigned char)*text);
        }
    }
}

void page_end(struct request *r, struct json_out *out, char kind, const char *key)
{
    char cursor[CURSOR_SIZE];
    struct buf link = BUF_INIT;

    if (!key) {
        out_null(out, "next");
        return;
    }
    cursor_encode(kind, key, cursor);
    out_text(out, "next", cursor);
    buf_printf(&link, "<%s?cursor=%s", r->target.path, cursor);
    for (int i = 0; i < r->target.parameter_count; i++) {
        const struct target_parameter *p = &r->target.parameters[i];

        if (strcmp(p->name, "cursor") != 0) {
            buf_printf(&link, "&%s=", p->name);
            add_encoded(&link, p->value);
        }
    }
    reply_header(r, "Link", "%s>; rel=\"next\"", link.data);
    buf_release(&link);
}
