#include "api/http/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/params.h"
#include "api/http/reply.h"
#include "daemon/base/mem.h"

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

void page_close(struct request *r, struct page *page)
{
    bool more = page->offered > page->limit;

    out_close(&page->out, ']');
    page_end(r, &page->out, page->kind, more ? page->last : NULL);
    out_close(&page->out, '}');
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
