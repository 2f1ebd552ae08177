/* GET /v1/changes: what changed on hosts, and the drift that was measured since. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "api/render/drift.h"
#include "daemon/base/clock.h"
#include "daemon/evidence/changes.h"
#include "db/views/changes.h"

struct list {
    struct page page;
    int64_t before;
};

/* Where a browser shows each report. */
static void pages_json(struct json_out *out, const json_t *reports)
{
    size_t i;
    json_t *report;

    out_open(out, "pages", '[');
    json_array_foreach(reports, i, report)
    {
        const char *href = json_string_value(json_object_get(report, "href"));
        char *page = drift_page(href ? href : "");

        out_text(out, NULL, page);
        free(page);
    }
    out_close(out, ']');
}

/* The headlines alone, for tables. */
static void headlines_json(struct json_out *out, const json_t *reports)
{
    size_t i;
    json_t *report;

    out_open(out, "headlines", '[');
    json_array_foreach(reports, i, report)
    {
        out_text(out, NULL, json_string_value(json_object_get(report, "headline")));
    }
    out_close(out, ']');
}

/* NULL: for nothing. */
static const char *waits_for(const struct change *change)
{
    return change->state == CHANGE_REPORTED ? NULL
           : change->state == CHANGE_MEASURING || change->surveying
               ? "the end of what measures it"
               : "a screening of its devices; where surveys are off, the end of the next "
                 "jobs on its host";
}

/* What is told of a time up to now was told before the host changed again: its link goes
 * no further. */
static void bound_reports(json_t *reports, int64_t next_ms)
{
    char when[CLOCK_RFC3339_SIZE];
    size_t i;
    json_t *report;

    clock_rfc3339(next_ms, when);
    json_array_foreach(reports, i, report)
    {
        const char *href = json_string_value(json_object_get(report, "href"));

        if (next_ms && href && strstr(href, "&since=") && !strstr(href, "&until=")) {
            json_object_set_new(report, "href", json_sprintf("%s&until=%s", href, when));
        }
    }
}

static void show(void *arg, const struct change *change)
{
    struct page *page = arg;
    struct json_out *out = &page->out;
    json_t *facts;
    json_t *reports;
    char *text;
    char *bounded;

    if (!page_takes(page, "%" PRId64, change->number)) {
        return;
    }
    facts = json_loads(change->facts, 0, NULL);
    reports = json_loads(change->reports, 0, NULL);
    text = changes_text(facts);
    bound_reports(reports, change->next_ms);
    bounded = json_dumps(reports, JSON_COMPACT);
    out_open(out, NULL, '{');
    out_int(out, "id", change->number);
    out_text(out, "host", change->host);
    out_time(out, "at", change->at_ms);
    out_text(out, "text", text);
    out_json(out, "facts", change->facts);
    out_text(out, "state", change_state_name(change->state));
    out_text(out, "waits_for", waits_for(change));
    headlines_json(out, reports);
    out_json(out, "reports", bounded);
    pages_json(out, reports);
    out_close(out, '}');
    free(text);
    free(bounded);
    json_decref(facts);
    json_decref(reports);
}

static enum err_code read_page(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct list *list = r->state;
    struct page *page = &list->page;

    list_open(&page->out);
    if (changes_each(tx, list->before, page_rows(page), show, page, err) != ERR_OK) {
        return err->code;
    }
    page_reply(r, page);
    return ERR_OK;
}

void changes_get(struct request *r)
{
    struct list *list = page_new(r, sizeof *list, 'x');

    list->before = param_cursor_number(r, 'x');
    if (!params_refused(r)) {
        request_read(r, read_page, NULL);
    }
}
