/* /v1/schedules: recurring jobs, made, read, changed, paused and removed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "api/job_refusal.h"
#include "daemon/base/array.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/jobs/expand.h"
#include "daemon/jobs/schedule_request.h"
#include "db/recurring/schedules.h"

enum { NEXT_TIMES = 5, RESULTS = 10 };

/* As JSON */

static void next_times_json(struct json_out *out, const struct schedule *s,
                            int64_t now_ms)
{
    int64_t at = s->paused ? 0 : s->next_ms;

    out_open(out, "next_times", '[');
    for (int i = 0; i < NEXT_TIMES && at; i++) {
        out_time(out, NULL, at);
        at = schedule_next(s, at > now_ms ? at : now_ms);
    }
    out_close(out, ']');
}

static void schedule_json(struct json_out *out, const struct schedule *s)
{
    char every[SCHEDULE_WHEN_SIZE] = "";

    if (s->every_seconds) {
        schedule_format_every(s->every_seconds, every);
    }
    out_text(out, "id", s->id);
    out_text(out, "name", s->name);
    out_name(out, "every", every);
    out_name(out, "calendar", s->calendar_text);
    out_bool(out, "paused", s->paused);
    out_int_if(out, "spread_seconds", s->spread_seconds >= 0, s->spread_seconds);
    out_time(out, "created_at", s->created_ms);
    out_time(out, "next_at", s->paused ? 0 : s->next_ms);
    next_times_json(out, s, clock_wall_ms());
    out_int(out, "jobs", s->jobs);
    out_int(out, "skipped", s->skipped);
    out_time(out, "last_at", s->last_ms);
    out_name(out, "last_job", s->last_job);
    out_name(out, "problem", s->problem);
    out_time(out, "problem_at", s->problem_ms);
    out_json(out, "job", s->request);
}

static void add_result(void *arg, const struct schedule_result *result)
{
    struct json_out *out = arg;

    out_open(out, NULL, '{');
    out_time(out, "due_at", result->due_ms);
    out_text(out, "job", result->job);
    out_text(out, "state", job_state_name(result->state));
    out_int(out, "runs_total", result->runs_total);
    out_int(out, "runs_done", result->runs_done);
    out_int(out, "runs_failed", result->runs_failed);
    out_time(out, "finished_at", result->finished_ms);
    out_close(out, '}');
}

/* One schedule with its last jobs, in OUT. */
static enum err_code one_json(struct tx *tx, const char *id, struct json_out *out,
                              struct err *err)
{
    struct schedule s;
    enum err_code code = schedules_get(tx, id, &s, err);

    if (code != ERR_OK) {
        return code;
    }
    out_open(out, NULL, '{');
    schedule_json(out, &s);
    out_open(out, "results", '[');
    code = schedules_each_job(tx, id, RESULTS, add_result, out, err);
    out_close(out, ']');
    out_close(out, '}');
    schedule_release(&s);
    return code;
}

/* Reading */

struct list {
    struct page page;
    char before[ID_SIZE];
};

static void add_schedule(void *arg, const struct schedule *s)
{
    struct page *page = arg;

    if (page_takes(page, "%s", s->id)) {
        out_open(&page->out, NULL, '{');
        schedule_json(&page->out, s);
        out_close(&page->out, '}');
    }
}

static enum err_code read_page(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct list *list = r->state;

    list_open(&list->page.out);
    if (schedules_each(tx, list->before, page_rows(&list->page), add_schedule,
                       &list->page, err) != ERR_OK) {
        return err->code;
    }
    page_reply(r, &list->page);
    return ERR_OK;
}

void schedules_get_list(struct request *r)
{
    struct list *list = page_new(r, sizeof *list, 's');

    param_cursor_id(r, 's', list->before);
    if (!params_refused(r)) {
        request_read(r, read_page, NULL);
    }
}

static enum err_code read_one(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct json_out out = JSON_OUT_INIT;

    if (one_json(tx, r->arguments[0], &out, err) != ERR_OK) {
        buf_release(&out.buf);
        return err->code;
    }
    reply_json(r, MHD_HTTP_OK, &out);
    return ERR_OK;
}

void schedules_get_one(struct request *r)
{
    request_read(r, read_one, NULL);
}

/* Writing */

/* A schedule on its way into the store. */
struct change {
    struct schedule schedule;
    bool is_new, pauses;
    char key[IDEMPOTENCY_KEY_SIZE]; /* Idempotency-Key; "": none was given */
    char *match;                    /* If-Match; NULL: none was given */
    char *posted;                   /* the body, canonical */
    char existing[ID_SIZE];         /* what the key made before; "": nothing */
    struct job job;                 /* as it would be made now */
    int64_t takes_ms;
    char device[CASE_TITLE_SIZE]; /* that takes so long */
    struct json_out out;
};

static void change_free(void *state)
{
    struct change *c = state;

    schedule_release(&c->schedule);
    job_release(&c->job);
    buf_release(&c->out.buf);
    free(c->match);
    free(c->posted);
    free(c);
}

/* Problems of a job, as they are told of its schedule. */
static void take_problems(struct request *r, const struct problems *problems)
{
    for (int i = 0; i < problems->count; i++) {
        const struct problem *p = &problems->items[i];
        char *pointer = xasprintf("/job%s", p->pointer ? p->pointer : "");

        problems_add(&r->problems, p->kind, pointer, "%s", p->detail);
        free(pointer);
    }
}

/* Whether the job could be made now.  False after having replied. */
static bool take_job(struct request *r, const json_t *job, struct change *c)
{
    const struct api_hooks *hooks = &r->api->hooks;
    const struct catalogue *catalogue = hooks->catalogue(hooks->arg);
    struct problems problems = { .count = 0 };
    const struct device_stack *devices;
    int count = hooks->devices(hooks->arg, &devices);
    json_t *request;
    bool localises = json_is_true(json_object_get(job, "localise"));

    if (!catalogue) {
        reply_problem(r, PROBLEM_NOT_READY, "no agent has said yet what it can run");
        return false;
    }
    if (localises) {
        problems_add(&r->problems, PROBLEM_INVALID, "/job/localise",
                     "a schedule measures again and again; it does not localise");
    }
    request = schedule_request_job(job, c->schedule.name);
    if (job_request_expand(request, catalogue, devices, count, &c->job, &problems) !=
        ERR_OK) {
        take_problems(r, &problems);
    } else {
        c->schedule.request = xstrdup(c->job.request);
    }
    problems_release(&problems);
    json_decref(request);
    if (r->problems.count > 0) {
        refuse_job(r);
    }
    return r->problems.count == 0;
}

static void keep_match(struct request *r, struct change *c)
{
    c->match = request_header_list(r, "If-Match");
}

/* Whether the schedule is not what the client has read, in the transaction that changes
 * it; then that is the reply.  What it made and when it is due next is part of it. */
static enum err_code find_stale(struct tx *tx, struct request *r, bool *ret_stale,
                                struct err *err)
{
    const struct change *c = r->state;
    struct json_out out = JSON_OUT_INIT;
    enum err_code code = ERR_OK;
    char etag[ETAG_SIZE];

    *ret_stale = false;
    if (c->match) {
        code = one_json(tx, r->arguments[0], &out, err);
    }
    if (c->match && code == ERR_OK) {
        buf_putc(&out.buf, '\n'); /* as reply_json ends it */
        etag_of(out.buf.data, out.buf.length, etag);
        *ret_stale = !etag_listed_strongly(c->match, etag);
    }
    if (*ret_stale) {
        reply_problem(r, PROBLEM_PRECONDITION,
                      "the schedule is not what If-Match says: its ETag is %s now", etag);
    }
    buf_release(&out.buf);
    return code;
}

static enum err_code estimate(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct change *c = r->state;

    return schedules_estimate(tx, &c->job, &c->takes_ms, c->device, err);
}

static enum err_code store(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct change *c = r->state;
    bool stale;
    enum err_code code = find_stale(tx, r, &stale, err);

    if (code != ERR_OK || stale) {
        return code;
    }
    code = c->is_new ? schedules_insert(tx, &c->schedule, c->key[0] ? c->key : NULL,
                                        c->posted, c->existing, err)
                     : schedules_replace(tx, &c->schedule, err);

    if (code == ERR_CONFLICT) {
        reply_problem(r, PROBLEM_CONFLICT, "%s", err->message);
        return ERR_OK;
    }
    if (code == ERR_BUSY) {
        reply_problem(r, PROBLEM_TOO_MANY, "%s", err->message);
        return ERR_OK;
    }
    return code != ERR_OK ? code
                          : one_json(tx, c->existing[0] ? c->existing : c->schedule.id,
                                     &c->out, err);
}

static void stored(struct request *r)
{
    const struct api_hooks *hooks = &r->api->hooks;
    struct change *c = r->state;

    hooks->schedules_changed(hooks->arg);
    if (c->existing[0]) {
        reply_header(r, "Idempotent-Replay", "true");
    }
    if (c->is_new) {
        reply_header(r, "Location", "/v1/schedules/%s",
                     c->existing[0] ? c->existing : c->schedule.id);
    }
    r->format = FORMAT_JSON;
    reply_json(r, c->is_new && !c->existing[0] ? MHD_HTTP_CREATED : MHD_HTTP_OK, &c->out);
}

static void refuse_pace(struct request *r, const char *pointer, int64_t gap_ms,
                        const char *what)
{
    char every[SCHEDULE_WHEN_SIZE];

    schedule_format_every(gap_ms / 1000, every);
    problems_add(&r->problems, PROBLEM_INVALID, pointer,
                 "%s, but it would be due again after %s", what, every);
    reply_problems(r);
}

/* What takes longer than it has until the next time is refused, and so is what some host
 * would not have begun until then. */
static void check_pace(struct request *r)
{
    struct change *c = r->state;
    struct schedule *s = &c->schedule;
    int64_t gap = schedule_gap_ms(s, s->created_ms);
    char what[CASE_TITLE_SIZE + 100];

    if (s->spread_seconds > 0 && s->spread_seconds >= gap / 1000) {
        snprintf(what, sizeof what, "its hosts begin up to %d s after it is due",
                 s->spread_seconds);
        refuse_pace(r, "/spread_seconds", gap, what);
        return;
    }
    if (c->takes_ms > gap) {
        snprintf(what, sizeof what,
                 "its runs take %" PRId64 " s on %s, by how long they took before",
                 c->takes_ms / 1000, c->device);
        refuse_pace(r, s->every_seconds ? "/every" : "/calendar", gap, what);
        return;
    }
    request_write(r, store, stored);
}

static void take_body(struct request *r, const json_t *body, bool is_new)
{
    struct change *c = xcalloc(1, sizeof *c);
    const json_t *job;

    request_keep(r, c, change_free);
    c->is_new = is_new;
    if (is_new && !read_idempotency_key(r, c->key)) {
        return;
    }
    if (schedule_request_read(body, clock_wall_ms(), &c->schedule, &job, &r->problems) !=
        ERR_OK) {
        reply_problems(r);
        return;
    }
    if (is_new) {
        id_new(c->schedule.created_ms, c->schedule.id);
        c->posted = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS);
    } else {
        copy_text(c->schedule.id, sizeof c->schedule.id, r->arguments[0]);
        keep_match(r, c);
    }
    if (take_job(r, job, c)) {
        request_read(r, estimate, check_pace);
    }
}

static void read_body(struct request *r, bool is_new)
{
    json_t *body = body_json(r);

    if (body) {
        take_body(r, body, is_new);
        json_decref(body);
    }
}

void schedules_post(struct request *r)
{
    read_body(r, true);
}

void schedules_put(struct request *r)
{
    read_body(r, false);
}

static enum err_code store_pause(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct change *c = r->state;
    struct schedule s;
    bool stale;
    enum err_code code = find_stale(tx, r, &stale, err);

    if (code != ERR_OK || stale) {
        return code;
    }
    if (schedules_get(tx, r->arguments[0], &s, err) != ERR_OK) {
        return err->code;
    }
    schedule_release(&s);
    /* What was missed while it was paused is not made up. */
    if (schedules_pause(tx, s.id, c->pauses,
                        s.paused ? schedule_next(&s, clock_wall_ms()) : s.next_ms,
                        err) != ERR_OK) {
        return err->code;
    }
    return one_json(tx, s.id, &c->out, err);
}

static void change_pause(struct request *r, bool pauses)
{
    struct change *c = xcalloc(1, sizeof *c);

    request_keep(r, c, change_free);
    c->pauses = pauses;
    keep_match(r, c);
    if (r->body.length > 0) {
        reply_problem(r, PROBLEM_INVALID, "this takes no body");
        return;
    }
    request_write(r, store_pause, stored);
}

void schedules_pause_one(struct request *r)
{
    change_pause(r, true);
}

void schedules_resume_one(struct request *r)
{
    change_pause(r, false);
}

static enum err_code delete_one(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct change *c = r->state;

    bool stale;
    enum err_code code = find_stale(tx, r, &stale, err);

    if (code != ERR_OK || stale) {
        return code;
    }
    return one_json(tx, r->arguments[0], &c->out, err) == ERR_OK
               ? schedules_delete(tx, r->arguments[0], err)
               : err->code;
}

void schedules_delete_one(struct request *r)
{
    struct change *c = xcalloc(1, sizeof *c);

    request_keep(r, c, change_free);
    keep_match(r, c);
    request_write(r, delete_one, stored);
}
