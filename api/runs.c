#include <stdlib.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "api/http/work.h"
#include "api/render/run_json.h"
#include "api/runs_names.h"
#include "daemon/base/mem.h"
#include "daemon/base/nearest.h"
#include "daemon/evidence/catalogue.h"

struct list {
    struct page page;
    struct runs_filter filter;
    char before[ID_SIZE];
    struct runs_names names;
};

static void release_names(void *state)
{
    struct list *list = state;

    runs_names_release(&list->names);
}

static void show_run(void *arg, const struct run_record *run)
{
    struct page *page = arg;

    if (page_takes(page, "%s", run->id)) {
        out_open(&page->out, NULL, '{');
        run_json(&page->out, run);
        out_close(&page->out, '}');
    }
}

static enum err_code read_page(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct list *list = r->state;
    struct page *page = &list->page;

    out_open(&page->out, NULL, '{');
    out_open(&page->out, "items", '[');
    if (runs_list(tx, &list->filter, list->before, page_rows(page), show_run, page,
                  err) != ERR_OK) {
        return err->code;
    }
    page_close(r, page);
    if (page->offered == 0) {
        return runs_names_read(tx, &list->filter, &r->problems, &list->names, err);
    }
    reply_json(r, 200, &page->out);
    return ERR_OK;
}

static void answer_empty(struct request *r)
{
    struct list *list = r->state;

    runs_names_check(r, &list->filter, &list->names);
    if (!params_refused(r)) {
        reply_json(r, 200, &list->page.out);
    }
}

static void read_outcome(struct request *r, struct runs_filter *filter)
{
    const char *name = request_parameter(r, "outcome");
    const char *names[OUTCOME_COUNT];
    const char *near;

    if (!name) {
        return;
    }
    filter->by_outcome = true;
    if (outcome_parse(name, &filter->outcome) == 0) {
        return;
    }
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        names[i] = outcome_name((enum outcome)i);
    }
    near = nearest_name(name, names, OUTCOME_COUNT);
    problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, "outcome",
                           "there is no outcome '%.64s'%s%s%s", name,
                           near ? "; did you mean '" : "", near ? near : "",
                           near ? "'?" : "");
}

void runs_get_list(struct request *r)
{
    struct list *list = page_new(r, sizeof *list, 'r');
    struct runs_filter *f = &list->filter;
    const char *job = request_parameter(r, "job");

    list->page.release = release_names;
    param_cursor_id(r, 'r', list->before);
    if (job && !id_valid(job)) {
        problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, "job",
                               "'%.64s' is not the id of a job", job);
    } else {
        copy_text(f->job, sizeof f->job, job ? job : "");
    }
    f->cell = param_id(r, "cell");
    param_text(r, "workload", f->workload, sizeof f->workload);
    param_text(r, "variant", f->variant, sizeof f->variant);
    param_text(r, "device", f->device, sizeof f->device);
    read_outcome(r, f);
    if (!params_refused(r)) {
        request_read(r, read_page, answer_empty);
    }
}

/* Whether the path names a run; replies if it cannot. */
static bool names_run(struct request *r)
{
    if (!id_valid(r->arguments[0])) {
        reply_problem(r, PROBLEM_NOT_FOUND, "there is no run '%.64s'", r->arguments[0]);
        return false;
    }
    return true;
}

static void show_digest(void *arg, const struct run_digest *digest)
{
    struct json_out *out = arg;

    out_open(out, NULL, '{');
    out_text(out, "digest", digest->digest);
    out_int(out, "iterations", digest->iterations);
    out_int(out, "first_iteration", digest->first_iteration);
    out_close(out, '}');
}

static enum err_code telemetry_json(struct tx *tx, const char *id, struct json_out *out,
                                    struct err *err)
{
    char *start;
    char *end;

    if (runs_telemetry(tx, id, &start, &end, err) != ERR_OK) {
        return err->code;
    }
    out_open(out, "telemetry", '{');
    out_json(out, "start", start);
    out_json(out, "end", end);
    out_close(out, '}');
    free(start);
    free(end);
    return ERR_OK;
}

static enum err_code read_one(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct json_out out = JSON_OUT_INIT;
    struct run_record run;

    if (runs_get(tx, r->arguments[0], &run, err) != ERR_OK) {
        return err->code;
    }
    out_open(&out, NULL, '{');
    run_json(&out, &run);
    if (telemetry_json(tx, run.id, &out, err) != ERR_OK) {
        buf_release(&out.buf);
        return err->code;
    }
    out_open(&out, "items", '[');
    if (runs_each_digest(tx, run.id, show_digest, &out, err) != ERR_OK) {
        buf_release(&out.buf);
        return err->code;
    }
    out_close(&out, ']');
    out_close(&out, '}');
    reply_json(r, 200, &out);
    return ERR_OK;
}

void runs_get_one(struct request *r)
{
    if (names_run(r)) {
        request_read(r, read_one, NULL);
    }
}

static enum err_code read_log(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    char *log;
    int64_t length;
    int64_t written;

    if (runs_log(tx, r->arguments[0], &log, &length, &written, err) != ERR_OK) {
        return err->code;
    }
    if (r->format == FORMAT_TEXT) {
        struct buf buf = BUF_INIT;

        buf_add(&buf, log, (size_t)length);
        reply_text(r, &buf);
    } else {
        struct json_out out = JSON_OUT_INIT;

        out_open(&out, NULL, '{');
        out_text(&out, "run", r->arguments[0]);
        out_int(&out, "bytes_kept", length);
        out_int(&out, "bytes_written", written);
        out_bool(&out, "truncated", written > length);
        out_bytes(&out, "log", log, (size_t)length);
        out_close(&out, '}');
        reply_json(r, 200, &out);
    }
    free(log);
    return ERR_OK;
}

void runs_get_log(struct request *r)
{
    if (names_run(r)) {
        request_read(r, read_log, NULL);
    }
}
