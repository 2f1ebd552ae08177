/* GET /v1/environments: where bit equality is expected. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "api/unknown.h"
#include "db/fleet.h"

static void environment_json(struct json_out *out, const struct environment *e,
                             const char *facts)
{
    out_open(out, NULL, '{');
    out_text(out, "id", e->id);
    out_text(out, "title", e->title);
    out_json(out, "facts", facts);
    out_int(out, "cells", e->cells);
    out_time(out, "first_seen_at", e->first_seen_ms);
    out_time(out, "last_seen_at", e->last_seen_ms);
    out_format(out, "matrix", "/v1/matrix?environment=%s", e->id);
    out_format(out, "href", "/v1/environments/%s", e->id);
    out_close(out, '}');
}

struct list {
    struct page page;
    int64_t before_ms, before_number;
};

static void show(void *arg, const struct environment *e)
{
    struct page *page = arg;

    if (page_takes(page, "%" PRId64 ".%" PRId64, e->last_seen_ms, e->number)) {
        environment_json(&page->out, e, e->json);
    }
}

static enum err_code read_list(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct list *list = r->state;
    struct page *page = &list->page;

    list_open(&page->out);
    if (environments_each(tx, list->before_ms, list->before_number, page_rows(page), show,
                          page, err) != ERR_OK) {
        return err->code;
    }
    page_reply(r, page);
    return ERR_OK;
}

void environments_get_list(struct request *r)
{
    struct list *list = page_new(r, sizeof *list, 'e');

    param_cursor_pair(r, 'e', &list->before_ms, &list->before_number);
    if (!params_refused(r)) {
        request_read(r, read_list, NULL);
    }
}

static enum err_code read_one(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct json_out out = JSON_OUT_INIT;
    struct environment e;
    char *facts;

    if (environments_get(tx, r->arguments[0], &e, &facts, err) != ERR_OK) {
        return err->code == ERR_NOT_FOUND ? unknown_environment(tx, r->arguments[0], err)
                                          : err->code;
    }
    environment_json(&out, &e, facts);
    free(facts);
    reply_json(r, 200, &out);
    return ERR_OK;
}

void environments_get_one(struct request *r)
{
    request_read(r, read_one, NULL);
}
