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

enum { SKIP_MAX = CELL_DEVICES_MAX };

/* Those of dissenters come first.  A page begins behind SKIP dissenters of cell AT, or,
 * with skip 0, behind the broken claim of cell AT. */
struct list {
    struct page page;
    int64_t at, skip;
    bool claims; /* dissenters are over */
};

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

    if (page_takes(page, "%" PRId64 ".1", cell->id)) {
        show_finding(&page->out, cell, NULL);
    }
}

static enum err_code show_dissenters(struct tx *tx, struct list *list, struct err *err)
{
    struct page *page = &list->page;
    struct dissenters all = { NULL, 0 };
    struct cell cell = { .id = 0 };
    int64_t number = 0; /* of those of the cell */
    enum err_code code = dissenters_each(
        tx, NULL, list->at, page_rows(page) + (int)list->skip, take_dissenter, &all, err);

    for (int i = 0; i < all.count && code == ERR_OK; i++) {
        const struct dissenter *d = &all.list[i];

        number = i > 0 && all.list[i - 1].cell == d->cell ? number + 1 : 1;
        if (d->cell == list->at && number <= list->skip) {
            continue;
        }
        if (cell.id != d->cell) {
            code = cells_get(tx, d->cell, &cell, err);
        }
        /* Two and more: behind so many of the cell, and one more. */
        if (code == ERR_OK &&
            page_takes(page, "%" PRId64 ".%" PRId64, d->cell, number + 1)) {
            show_finding(&page->out, &cell, d);
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
    if (!list->claims && show_dissenters(tx, list, err) != ERR_OK) {
        return err->code;
    }
    if (page->offered <= page->limit &&
        cells_each_broken_claim(tx, list->claims ? list->at : 0, page_rows(page),
                                show_broken_claim, page, err) != ERR_OK) {
        return err->code;
    }
    page_reply(r, page);
    return ERR_OK;
}

void findings_get(struct request *r)
{
    struct list *list = page_new(r, sizeof *list, 'f');

    param_cursor_pair(r, 'f', &list->at, &list->skip);
    list->claims = list->skip == 1;
    list->skip -= list->at > 0;
    list->skip = list->skip < SKIP_MAX ? list->skip : SKIP_MAX;
    if (!params_refused(r)) {
        request_read(r, read_page, NULL);
    }
}
