#include <inttypes.h>
#include <stdlib.h>

#include "api/handlers.h"
#include "api/job_json.h"
#include "api/params.h"
#include "api/run_json.h"
#include "api/work.h"
#include "daemon/base/mem.h"
#include "db/cells.h"

struct page {
    int limit, count;
    int64_t before, last; /* cells */
    struct json_out out;
};

static void page_free(void *state)
{
    struct page *page = state;

    buf_release(&page->out.buf);
    free(page);
}

static void show_broken_claim(void *arg, const struct cell *cell)
{
    struct page *page = arg;
    struct json_out *out = &page->out;

    if (page->count++ >= page->limit) {
        return;
    }
    page->last = cell->id;
    out_open(out, NULL, '{');
    out_text(out, "finding", "claims deterministic, seen to vary");
    out_int(out, "cell", cell->id);
    case_json(out, &cell->key);
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
    struct page *page = r->state;
    struct json_out *out = &page->out;

    out_open(out, NULL, '{');
    out_open(out, "items", '[');
    if (cells_each_broken_claim(tx, page->before, page->limit + 1, show_broken_claim,
                                page, err) != ERR_OK) {
        return err->code;
    }
    out_close(out, ']');
    page_end_number(r, out, 'f', page->count > page->limit ? page->last : 0);
    out_close(out, '}');
    reply_json(r, 200, out);
    return ERR_OK;
}

void findings_get(struct request *r)
{
    struct page *page = xcalloc(1, sizeof *page);

    request_keep(r, page, page_free);
    page->limit = param_limit(r);
    page->before = param_cursor_number(r, 'f');
    if (!params_refused(r)) {
        request_read(r, read_page, NULL);
    }
}
