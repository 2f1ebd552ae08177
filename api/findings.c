/* GET /v1/findings: devices that dissent from their equals, and cells whose results
 * contradict the promise of a library. */
#include <inttypes.h>
#include <stdlib.h>

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "api/render/nouns_json.h"
#include "daemon/base/mem.h"
#include "db/cells.h"
#include "db/dissent/device_list.h"

struct list {
    struct page page;
    int64_t before; /* a cell */
};

enum { DISSENTERS_SHOWN = 1000 };

struct dissenters {
    struct dissenter *list;
    int count;
};

static void take_dissenter(void *arg, const struct dissenter *dissenter)
{
    struct dissenters *all = arg;

    all->list = xgrow(all->list, all->count, sizeof *all->list);
    all->list[all->count++] = *dissenter;
}

/* DISSENTER: NULL for what contradicts a library. */
static void show_finding(struct json_out *out, const struct cell *cell,
                         const struct dissenter *dissenter)
{
    out_open(out, NULL, '{');
    out_text(out, "finding",
             dissenter ? "device dissents from its equals"
                       : "claims deterministic, seen to vary");
    out_text(out, "device", dissenter ? dissenter->device : NULL);
    out_text(out, "host", dissenter ? dissenter->host : NULL);
    out_text(out, "reason", cell->reason);
    out_int(out, "cell", cell->id);
    case_json(out, &cell->key);
    subject_json(out, cell->subject, cell->subject_name);
    out_text(out, "environment", cell->environment);
    out_int(out, "runs", cell->evidence.runs[OUTCOME_COMPLETED]);
    out_int(out, "iterations", cell->evidence.iterations);
    out_int(out, "distinct_digests", cell->evidence.distinct_digests);
    out_time(out, "last_run_at", cell->last_ms);
    out_format(out, "digests", "/v1/cells/%" PRId64 "/evidence", cell->id);
    out_format(out, "href", "/v1/cells/%" PRId64, cell->id);
    out_close(out, '}');
}

static void show_broken_claim(void *arg, const struct cell *cell)
{
    struct page *page = arg;

    if (page_takes(page, "%" PRId64, cell->id)) {
        show_finding(&page->out, cell, NULL);
    }
}

static enum err_code show_dissenters(struct tx *tx, struct json_out *out, struct err *err)
{
    struct dissenters all = { NULL, 0 };
    struct cell cell;
    enum err_code code =
        dissenters_each(tx, NULL, DISSENTERS_SHOWN, take_dissenter, &all, err);

    for (int i = 0; i < all.count && code == ERR_OK; i++) {
        code = cells_get(tx, all.list[i].cell, &cell, err);
        if (code == ERR_OK) {
            show_finding(out, &cell, &all.list[i]);
        }
    }
    free(all.list);
    return code;
}

static enum err_code read_page(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct list *list = r->state;
    struct page *page = &list->page;

    list_open(&page->out);
    if (!list->before && show_dissenters(tx, &page->out, err) != ERR_OK) {
        return err->code;
    }
    if (cells_each_broken_claim(tx, list->before, page_rows(page), show_broken_claim,
                                page, err) != ERR_OK) {
        return err->code;
    }
    page_reply(r, page);
    return ERR_OK;
}

void findings_get(struct request *r)
{
    struct list *list = page_new(r, sizeof *list, 'f');

    list->before = param_cursor_number(r, 'f');
    if (!params_refused(r)) {
        request_read(r, read_page, NULL);
    }
}
