/* GET /v1/matrix?view=environments and ?view=devices: digest classes, case by
 * environment and case by device. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api/classes.h"
#include "api/http/cache.h"
#include "api/http/page.h"
#include "api/http/params.h"
#include "api/http/renew.h"
#include "api/http/reply.h"
#include "api/render/classes.h"
#include "api/unknown.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "db/fleet.h"
#include "db/runs.h"
#include "db/views/classes.h"

enum { ENTRIES_MAX = 40000 };

struct asked {
    bool of_devices, differing, each_host;
    char workload[CASE_NAME_SIZE];
    char environment[DIGEST_TEXT_SIZE]; /* "": the one most recently used */
    enum subject subject;
    int limit;
    char after[CURSOR_KEY_SIZE]; /* the column before the first; "": from the first */
};

struct shown {
    struct asked asked;
    int64_t now_ms, valid_until_ms;
    uint64_t generation;
    char *key;
    struct classes classes;
    struct environment environment;
    char next[CURSOR_SIZE]; /* "": there is no next page */
    struct buf body;
    char etag[ETAG_SIZE];
};

static void shown_free(void *state)
{
    struct shown *shown = state;

    classes_release(&shown->classes);
    buf_release(&shown->body);
    free(shown->key);
    free(shown);
}

/* Parameters of other views than the one asked for. */
static void refuse_others(struct request *r, bool of_devices)
{
    static const char *const documents[] = { "table", "device", "as_of", "environment" };

    for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
        if (request_parameter(r, documents[i]) &&
            !(of_devices && strcmp(documents[i], "environment") == 0)) {
            problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, documents[i],
                                   "is not a parameter of this view");
        }
    }
    if (!of_devices && request_parameter(r, "columns")) {
        problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, "columns",
                               "is a parameter of the view devices");
    }
}

static void read_asked(struct request *r, struct asked *ret_asked)
{
    const char *view = param_value(r, "view");
    const char *rows = param_value(r, "rows");
    const char *columns = param_value(r, "columns");
    const char *subject = param_value(r, "subject");
    const char *cursor = request_parameter(r, "cursor");

    *ret_asked = (struct asked){ .subject = SUBJECT_COUNT };
    ret_asked->of_devices = view && strcmp(view, "devices") == 0;
    ret_asked->differing = rows && strcmp(rows, "differing") == 0;
    ret_asked->each_host = columns && strcmp(columns, "hosts") == 0;
    if (subject) {
        subject_parse(subject, &ret_asked->subject);
    }
    param_text(r, "workload", ret_asked->workload, sizeof ret_asked->workload);
    param_text(r, "environment", ret_asked->environment, sizeof ret_asked->environment);
    ret_asked->limit = param_limit(r);
    if (cursor && cursor_decode('k', cursor, ret_asked->after) != 0) {
        problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, "cursor",
                               "is not the 'next' of a page of this view");
    }
    refuse_others(r, ret_asked->of_devices);
}

/* A name that no run has is refused, with the one that is most like it. */
static enum err_code check_workload(struct tx *tx, struct request *r, const char *name,
                                    struct err *err)
{
    struct choices known = { .count = 0 };
    char hint[NEAREST_HINT_SIZE];

    if (*name && runs_names_list(tx, NAME_WORKLOAD, "", &known, err) != ERR_OK) {
        choices_release(&known);
        return err->code;
    }
    if (*name && !choices_hold(&known, name)) {
        problems_add_parameter(&r->problems, PROBLEM_UNKNOWN_WORKLOAD, "workload",
                               "nothing was run of a workload '%.64s'%s", name,
                               choices_hint(&known, name, hint));
    }
    choices_release(&known);
    return ERR_OK;
}

/* How many columns a page has at most, so that it has not too many entries. */
static int columns_max(const struct shown *shown, const struct classes_view *view)
{
    const struct classes *classes = &shown->classes;
    int rows = 0;
    int most;

    for (int r = 0; r < classes->row_count; r++) {
        rows += classes_show_row(view, &classes->rows[r]);
    }
    most = ENTRIES_MAX / (rows > 0 ? rows : 1);
    most = most < 1 ? 1 : most;
    return most < shown->asked.limit ? most : shown->asked.limit;
}

/* The columns of the page. */
static void cut(struct shown *shown, struct classes_view *view)
{
    const struct classes *classes = &shown->classes;
    int count = classes->column_count;
    int most = columns_max(shown, view);

    for (int c = 0; c < count && shown->asked.after[0]; c++) {
        if (strncmp(classes->columns[c].id, shown->asked.after, CURSOR_KEY_SIZE - 1) ==
            0) {
            view->first = c + 1;
        }
    }
    view->count = count - view->first;
    if (view->count > most) {
        char key[CURSOR_KEY_SIZE];

        view->count = most;
        copy_text(key, sizeof key, classes->columns[view->first + view->count - 1].id);
        cursor_encode('k', key, shown->next);
        view->next = shown->next;
    }
}

static void render(struct request *r, struct shown *shown)
{
    struct classes_view view = { .classes = &shown->classes,
                                 .of_devices = shown->asked.of_devices,
                                 .environment = shown->environment.id,
                                 .environment_title = shown->environment.title,
                                 .differing = shown->asked.differing,
                                 .as_of_ms = shown->now_ms };
    struct json_out out = JSON_OUT_INIT;

    cut(shown, &view);
    if (r->format == FORMAT_TEXT) {
        classes_text(&view, &shown->body);
    } else if (r->format == FORMAT_CSV) {
        classes_csv(&view, &shown->body);
    } else {
        classes_json(&view, &out);
        out_text(&out, "next", view.next);
        out_close(&out, '}');
        buf_putc(&out.buf, '\n');
        shown->body = out.buf;
    }
    etag_of(shown->body.data, shown->body.length, shown->etag);
}

static enum err_code read_devices(struct tx *tx, struct request *r,
                                  const struct classes_filter *filter, struct err *err)
{
    struct shown *shown = r->state;
    const char *id = shown->asked.environment;
    char *json = NULL;
    enum err_code code = environments_get(tx, id, &shown->environment, &json, err);

    free(json);
    if (code == ERR_NOT_FOUND && *id) {
        return unknown_environment_parameter(tx, r, "environment", id, err);
    }
    if (code == ERR_NOT_FOUND) {
        return ERR_OK;
    }
    return code == ERR_OK ? classes_read_devices(tx, filter, shown->environment.id,
                                                 &shown->classes, err)
                          : code;
}

static enum err_code read_classes(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct shown *shown = r->state;
    const struct classes_filter filter = {
        .workload = shown->asked.workload[0] ? shown->asked.workload : NULL,
        .subject = shown->asked.subject,
        .now_ms = shown->now_ms,
        .stale_after_ms = r->api->stale_after_ms,
        .each_host = shown->asked.each_host,
    };

    if (check_workload(tx, r, shown->asked.workload, err) != ERR_OK ||
        (shown->asked.of_devices
             ? read_devices(tx, r, &filter, err)
             : classes_read_environments(tx, &filter, &shown->classes, err)) != ERR_OK) {
        return err->code;
    }
    if (r->problems.count > 0) {
        reply_problems(r);
        return ERR_OK;
    }
    render(r, shown);
    return ERR_OK;
}

/* Time alone makes cells stale: a page is built anew after a minute at the latest. */
enum { VALID_MS = 60000 };

static void share(struct request *r)
{
    struct shown *shown = r->state;
    size_t length;
    char *body = buf_detach(&shown->body, &length);

    reply_shared(r,
                 cache_add(&r->api->cache, shown->key, shown->generation, shown->now_ms,
                           shown->now_ms + VALID_MS, body, length, shown->etag),
                 format_content_type(r->format));
}

/* As it is, or as it was a short time ago.  Returns whether it is there. */
static bool show_made(struct request *r)
{
    struct cache *cache = &r->api->cache;
    const struct shown *shown = r->state;
    struct cached *cached =
        cache_find(cache, shown->key, shown->generation, shown->now_ms);
    bool renew = false;

    if (!cached) {
        cached =
            cache_find_old(cache, shown->key, renew_age_ms(r), shown->now_ms, &renew);
    }
    if (cached) {
        reply_shared(r, cached, format_content_type(r->format));
    }
    if (renew) {
        request_renew(r, read_classes, share);
    }
    return cached != NULL;
}

static char *cache_key(const struct request *r, const struct asked *a)
{
    return xasprintf("classes|%llu|%d|%d|%d|%d|%d|%d|%s|%s|%s",
                     (unsigned long long)r->api->configured, (int)r->format,
                     a->of_devices, a->differing, a->each_host, (int)a->subject, a->limit,
                     a->workload, a->environment, a->after);
}

void classes_get(struct request *r)
{
    struct shown *shown = xcalloc(1, sizeof *shown);

    request_keep(r, shown, shown_free);
    shown->now_ms = clock_wall_ms();
    read_asked(r, &shown->asked);
    if (params_refused(r)) {
        return;
    }
    shown->generation = store_generation(r->api->store);
    shown->key = cache_key(r, &shown->asked);
    if (!show_made(r)) {
        request_read(r, read_classes, share);
    }
}
