/* GET /v1/runs/{id}/trace: what the probes of a run saw, in program order. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "daemon/base/mem.h"
#include "daemon/base/nearest.h"
#include "daemon/evidence/catalogue.h"
#include "db/runs.h"
#include "db/traces.h"

/* Which records are wanted. */
struct view {
    int limit;
    int64_t from; /* position */
    int64_t first_iteration, last_iteration, first_step, last_step;
    char place[2 * TRACE_PLACE_MAX]; /* glob; "": any */
};

static void show_record(struct json_out *out, const struct trace *trace, int64_t position)
{
    const struct trace_record *record = &trace->records[position];
    char in[DIGEST_HEX_SIZE];
    char written[DIGEST_HEX_SIZE];

    digest_hex(record->in, in);
    digest_hex(record->out, written);
    out_open(out, NULL, '{');
    out_int(out, "position", position);
    out_int(out, "iteration", record->iteration);
    out_int(out, "step", record->step);
    out_text(out, "place", trace->places[record->place]);
    out_text(out, "in", trace_reads_nothing(record) ? NULL : in);
    out_text(out, "out", written);
    out_close(out, '}');
}

static bool *wanted_places(const struct view *view, const struct trace *trace)
{
    bool *wanted = xcalloc((size_t)trace->place_count + 1, sizeof *wanted);

    for (int i = 0; i < trace->place_count; i++) {
        wanted[i] = !view->place[0] || trace_place_matches(view->place, trace->places[i]);
    }
    return wanted;
}

static bool is_wanted(const struct view *view, const bool *places,
                      const struct trace_record *record)
{
    return places[record->place] && record->iteration >= view->first_iteration &&
           record->iteration <= view->last_iteration &&
           record->step >= view->first_step && record->step <= view->last_step;
}

/* Returns where the next page begins; 0: there is none. */
static int64_t show_page(struct json_out *out, const struct view *view,
                         const struct trace *trace)
{
    bool *places = wanted_places(view, trace);
    int64_t next = 0;
    int count = 0;

    for (int64_t i = view->from; i < trace->count && next == 0; i++) {
        if (!is_wanted(view, places, &trace->records[i])) {
            continue;
        }
        if (count++ == view->limit) {
            next = i;
        } else {
            show_record(out, trace, i);
        }
    }
    free(places);
    return next;
}

static void show(struct request *r, const struct trace *trace)
{
    struct json_out out = JSON_OUT_INIT;
    char key[CURSOR_KEY_SIZE];
    int64_t next;

    out_open(&out, NULL, '{');
    out_text(&out, "run", r->arguments[0]);
    out_int(&out, "records", trace->count);
    out_int(&out, "dropped", trace->dropped);
    out_bool(&out, "truncated", trace->dropped > 0);
    out_int(&out, "places", trace->place_count);
    out_open(&out, "items", '[');
    next = show_page(&out, r->state, trace);
    out_close(&out, ']');
    snprintf(key, sizeof key, "%" PRId64, next);
    page_end(r, &out, 't', next ? key : NULL);
    out_close(&out, '}');
    reply_json(r, 200, &out);
}

/* A name that no record can have would look like a step without records. */
static bool check_place(struct request *r, const struct trace *trace)
{
    const struct view *view = r->state;
    char hint[NEAREST_HINT_SIZE];

    if (!view->place[0]) {
        return true;
    }
    for (int i = 0; i < trace->place_count; i++) {
        if (trace_place_matches(view->place, trace->places[i])) {
            return true;
        }
    }
    nearest_hint(view->place, (const char *const *)trace->places, trace->place_count,
                 hint);
    problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, "place",
                           "no place of this trace matches '%.100s'%s", view->place,
                           hint);
    return false;
}

static enum err_code read_trace(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct trace trace;
    struct run_record run;

    if (runs_get(tx, r->arguments[0], &run, err) != ERR_OK) {
        return err->code;
    }
    if (!run.trace_records) {
        return err_set(err, ERR_NOT_FOUND, "run %s has no trace: %s", run.id,
                       run.finished ? "it recorded no probes"
                                    : "it is stored when the run has ended");
    }
    if (runs_trace(tx, run.id, &trace, NULL, err) != ERR_OK) {
        return err->code;
    }
    if (check_place(r, &trace)) {
        show(r, &trace);
    } else {
        reply_problems(r);
    }
    trace_release(&trace);
    return ERR_OK;
}

void traces_get_one(struct request *r)
{
    struct view *view = xcalloc(1, sizeof *view);

    request_keep(r, view, NULL);
    view->limit = param_limit(r);
    view->from = param_cursor_number(r, 't');
    param_range(r, "iteration", &view->first_iteration, &view->last_iteration);
    param_range(r, "step", &view->first_step, &view->last_step);
    param_text(r, "place", view->place, sizeof view->place);
    if (!params_refused(r)) {
        request_read(r, read_trace, NULL);
    }
}
