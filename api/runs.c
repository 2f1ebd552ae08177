/* GET /v1/runs: the list by filters, one run, and the tail of its log. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "api/render/nouns_json.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"
#include "daemon/evidence/catalogue.h"
#include "db/cells.h"
#include "db/peers/peer_rows.h"
#include "db/runs.h"
#include "db/upkeep/summaries.h"

/* If a list of runs is empty, the names in its filter are checked: one that does not
 * exist is refused, with the nearest that does. */

enum { NAMES = 3 }; /* workload, variant, device */

/* Zero-initialised is empty. */
struct names {
    bool unknown[NAMES];         /* the filter has one that the database lacks */
    struct choices known[NAMES]; /* then: those of the database */
};

static const struct {
    const char *parameter;
    enum problem_kind problem;
    const char *what;
} kinds[NAMES] = {
    [NAME_WORKLOAD] = { "workload", PROBLEM_UNKNOWN_WORKLOAD, "there is no workload" },
    [NAME_VARIANT] = { "variant", PROBLEM_UNKNOWN_VARIANT, "no workload has a variant" },
    [NAME_DEVICE] = { "device", PROBLEM_UNKNOWN_DEVICE, "there is no device" },
};

static const char *wanted(const struct runs_filter *filter, enum name_kind kind)
{
    switch (kind) {
    case NAME_WORKLOAD:
        return filter->workload;
    case NAME_VARIANT:
        return filter->variant;
    default:
        return filter->device;
    }
}

static void names_release(struct names *names)
{
    for (int i = 0; i < NAMES; i++) {
        choices_release(&names->known[i]);
    }
}

static enum err_code read_kind(struct tx *tx, const struct runs_filter *filter,
                               enum name_kind kind, struct names *names, struct err *err)
{
    const char *of = kind == NAME_VARIANT ? filter->workload : "";
    const char *name = wanted(filter, kind);
    bool has = true;

    if (name[0] && runs_names_has(tx, kind, of, name, &has, err) != ERR_OK) {
        return err->code;
    }
    names->unknown[kind] = !has;
    return has ? ERR_OK : runs_names_list(tx, kind, of, &names->known[kind], err);
}

static enum err_code check_job(struct tx *tx, const char *job, struct problems *problems,
                               struct err *err)
{
    bool has = true;

    if (job[0] && runs_names_has(tx, NAME_JOB, "", job, &has, err) != ERR_OK) {
        return err->code;
    }
    if (!has) {
        problems_add_parameter(problems, PROBLEM_INVALID_PARAMETER, "job",
                               "there is no job %s", job);
    }
    return ERR_OK;
}

static enum err_code check_cell(struct tx *tx, int64_t id, struct problems *problems,
                                struct err *err)
{
    struct cell cell;
    enum err_code code = id ? cells_get(tx, id, &cell, err) : ERR_OK;

    if (code == ERR_NOT_FOUND) {
        problems_add_parameter(problems, PROBLEM_INVALID_PARAMETER, "cell",
                               "there is no cell %" PRId64, id);
        return ERR_OK;
    }
    return code;
}

/* On a reader: what the database knows of FILTER's names.  A job or a cell that is not
 * there is added to PROBLEMS. */
static enum err_code names_read(struct tx *tx, const struct runs_filter *filter,
                                struct problems *problems, struct names *ret_names,
                                struct err *err)
{
    for (int i = 0; i < NAMES; i++) {
        if (read_kind(tx, filter, (enum name_kind)i, ret_names, err) != ERR_OK) {
            return err->code;
        }
    }
    if (check_job(tx, filter->job, problems, err) != ERR_OK) {
        return err->code;
    }
    return check_cell(tx, filter->cell, problems, err);
}

static void add_from_catalogue(const struct catalogue *catalogue,
                               const struct runs_filter *filter, enum name_kind kind,
                               struct choices *choices)
{
    for (int i = 0; i < catalogue_count(catalogue); i++) {
        const struct catalogue_workload *w = catalogue_at(catalogue, i);

        if (kind == NAME_WORKLOAD) {
            choices_add(choices, w->name);
        } else if (!filter->workload[0] || strcmp(filter->workload, w->name) == 0) {
            for (int v = 0; v < w->variant_count; v++) {
                choices_add(choices, w->variants[v].name);
            }
        }
    }
}

static void add_devices(const struct api_hooks *hooks, struct choices *choices)
{
    const struct device_stack *devices;
    int count = hooks->devices(hooks->arg, &devices);

    for (int i = 0; i < count; i++) {
        choices_add(choices, devices[i].id);
    }
}

/* Adds what the agents know to what the database knows. */
static void add_present(struct request *r, const struct runs_filter *filter,
                        enum name_kind kind, struct choices *known)
{
    const struct api_hooks *hooks = &r->api->hooks;

    if (kind == NAME_DEVICE) {
        add_devices(hooks, known);
    } else {
        add_from_catalogue(hooks->catalogue(hooks->arg), filter, kind, known);
    }
}

static void refuse(struct request *r, const struct runs_filter *filter,
                   enum name_kind kind, const struct choices *known)
{
    bool of_one = kind == NAME_VARIANT && filter->workload[0];
    const char *name = wanted(filter, kind);
    char hint[NEAREST_HINT_SIZE];

    problems_add_parameter(&r->problems, kinds[kind].problem, kinds[kind].parameter,
                           "%s '%.100s'%s",
                           of_one ? "the workload has no variant" : kinds[kind].what,
                           name, choices_hint(known, name, hint));
}

/* On the loop: adds to r->problems what neither the database nor any agent has; nothing
 * before the first agent said what there is. */
static void names_check(struct request *r, const struct runs_filter *filter,
                        struct names *names)
{
    bool agents_said = r->api->hooks.catalogue(r->api->hooks.arg) != NULL;
    int before = r->problems.count;

    for (int i = 0; agents_said && i < NAMES; i++) {
        struct choices *known = &names->known[i];

        if (!names->unknown[i] || (i == NAME_VARIANT && r->problems.count > before)) {
            continue; /* of a workload that is none, nothing is known */
        }
        add_present(r, filter, (enum name_kind)i, known);
        if (!choices_hold(known, wanted(filter, (enum name_kind)i))) {
            refuse(r, filter, (enum name_kind)i, known);
        }
    }
}

struct list {
    struct page page;
    struct runs_filter filter;
    char before[ID_SIZE];
    struct names names;
    int64_t folded; /* runs that the list would have, were they not; -1: not counted */
};

static void list_release(void *state)
{
    struct list *list = state;

    names_release(&list->names);
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

/* Whoever asks for less than a job or a cell is told of none. */
static enum err_code count_folded(struct tx *tx, struct list *list, struct err *err)
{
    const struct runs_filter *f = &list->filter;

    list->folded = -1;
    return (!f->job[0] && !f->cell) || f->workload[0] || f->variant[0] || f->device[0] ||
                   f->by_outcome
               ? ERR_OK
               : summaries_count(tx, f->job, f->cell, &list->folded, err);
}

static enum err_code read_page(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct list *list = r->state;
    struct page *page = &list->page;

    if (count_folded(tx, list, err) != ERR_OK) {
        return err->code;
    }
    out_open(&page->out, NULL, '{');
    out_int_if(&page->out, "folded", list->folded >= 0, list->folded);
    out_open(&page->out, "items", '[');
    if (runs_list(tx, &list->filter, list->before, page_rows(page), show_run, page,
                  err) != ERR_OK) {
        return err->code;
    }
    if (page->offered == 0) {
        return names_read(tx, &list->filter, &r->problems, &list->names, err);
    }
    page_reply(r, page);
    return ERR_OK;
}

static void answer_empty(struct request *r)
{
    struct list *list = r->state;

    names_check(r, &list->filter, &list->names);
    if (!params_refused(r)) {
        page_reply(r, &list->page);
    }
}

void runs_get_list(struct request *r)
{
    struct list *list = page_new(r, sizeof *list, 'r');
    struct runs_filter *f = &list->filter;
    const char *outcome, *challenges;

    list->page.release = list_release;
    param_cursor_id(r, 'r', list->before);
    param_text(r, "job", f->job, sizeof f->job);
    f->cell = param_number(r, "cell");
    param_text(r, "workload", f->workload, sizeof f->workload);
    param_text(r, "variant", f->variant, sizeof f->variant);
    param_text(r, "device", f->device, sizeof f->device);
    outcome = param_value(r, "outcome");
    challenges = param_value(r, "challenges");
    f->challenges = challenges && strcmp(challenges, "only") == 0;
    f->by_outcome = outcome && outcome_parse(outcome, &f->outcome) == 0;
    /* Of a job or a cell there is an index, which most runs of a page are near. */
    r->heavy = f->workload[0] || f->variant[0] || f->device[0] || f->by_outcome;
    if (!params_refused(r)) {
        request_read(r, read_page, answer_empty);
    }
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

/* Where it was measured, if not here. */
static enum err_code peer_json(struct tx *tx, const char *id, struct json_out *out,
                               struct err *err)
{
    struct peer_origin origin;

    if (peers_origin(tx, id, &origin, err) != ERR_OK) {
        return err->code;
    }
    if (out_object(out, "peer", origin.peer[0])) {
        out_text(out, "name", origin.peer);
        out_text(out, "service", origin.service);
        out_text(out, "reprod", origin.reprod);
        out_close(out, '}');
    }
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
    if (peer_json(tx, run.id, &out, err) != ERR_OK ||
        telemetry_json(tx, run.id, &out, err) != ERR_OK) {
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
    request_read(r, read_one, NULL);
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

        text_show(&buf, log, (size_t)length, "\n\t");
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
    request_read(r, read_log, NULL);
}
