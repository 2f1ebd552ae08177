/* GET /v1/findings: cells whose results contradict the promise of a library. */
#include <inttypes.h>

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "api/render/nouns_json.h"
#include "db/cells.h"

struct list {
    struct page page;
    int64_t before; /* a cell */
};

static void show_broken_claim(void *arg, const struct cell *cell)
{
    struct page *page = arg;
    struct json_out *out = &page->out;

    if (!page_takes(page, "%" PRId64, cell->id)) {
        return;
    }
    out_open(out, NULL, '{');
    out_text(out, "finding", "claims deterministic, seen to vary");
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

static enum err_code read_page(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct list *list = r->state;
    struct page *page = &list->page;

    list_open(&page->out);
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
