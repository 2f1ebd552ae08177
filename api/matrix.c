/* GET /v1/matrix: which matrix the query asks for, and its rendering, which is cached
 * until the store changes.  The documents view is here, others are in api/classes.c. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api/classes.h"
#include "api/http/cache.h"
#include "api/http/handlers.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "api/render/matrix.h"
#include "api/unknown.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/base/nearest.h"
#include "db/fleet.h"
#include "db/matrix.h"
#include "db/runs.h"

enum { ENVIRONMENTS_MAX = 1000 };

/* Which matrix is wanted: the query's environment, device and time. */
struct choice {
    char environment[DIGEST_TEXT_SIZE]; /* "": the device's, else the default */
    char device[CASE_TITLE_SIZE];       /* "": any */
    enum subject only;                  /* SUBJECT_COUNT: rows of all subjects */
    struct matrix_default standard;
    int64_t as_of_ms; /* 0: now */
};

/* Parameters of other views. */
static void refuse_others(struct request *r)
{
    static const char *const others[] = { "rows", "columns", "workload", "limit",
                                          "cursor" };

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (request_parameter(r, others[i])) {
            problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, others[i],
                                   "is not a parameter of this view");
        }
    }
}

/* The other parameters; what is wrong is added to r->problems. */
static void read_choice(struct request *r, int64_t now_ms, struct choice *ret_choice)
{
    const char *only = param_value(r, "subject");
    const struct device_stack *devices;
    int count;

    *ret_choice =
        (struct choice){ .as_of_ms = param_time(r, "as_of"), .only = SUBJECT_COUNT };
    if (only) {
        subject_parse(only, &ret_choice->only);
    }
    param_text(r, "device", ret_choice->device, sizeof ret_choice->device);
    param_text(r, "environment", ret_choice->environment, sizeof ret_choice->environment);
    count = r->api->hooks.devices(r->api->hooks.arg, &devices);
    matrix_default_find(devices, count, ret_choice->device, &ret_choice->standard);
    if (request_parameter(r, "environment") && ret_choice->device[0]) {
        problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, "device",
                               "give either 'environment' or 'device', not both");
    }
    if (ret_choice->as_of_ms > now_ms) {
        problems_add_parameter(&r->problems, PROBLEM_INVALID_PARAMETER, "as_of",
                               "lies in the future");
    }
}

/* Looks for a device, then for the environments of its kind. */
struct search {
    bool found;
    char backend[CASE_NAME_SIZE], model[CASE_TITLE_SIZE];
    char environment[DIGEST_TEXT_SIZE];
};

static void match_device(void *arg, const struct device *device)
{
    struct search *s = arg;

    s->found = true;
    copy_text(s->backend, sizeof s->backend, device->backend);
    copy_text(s->model, sizeof s->model, device->model);
}

static void match_environment(void *arg, const struct environment *e)
{
    struct search *s = arg;
    json_t *facts;
    const char *backend;
    const char *model;

    if (s->environment[0]) {
        return;
    }
    facts = json_loads(e->json, 0, NULL);
    backend = json_string_value(json_object_get(facts, "backend"));
    model = json_string_value(json_object_get(facts, "model"));
    if (backend && model && strcmp(backend, s->backend) == 0 &&
        strcmp(model, s->model) == 0) {
        copy_text(s->environment, sizeof s->environment, e->id);
    }
    json_decref(facts);
}

static enum err_code refuse_device(struct tx *tx, const char *device,
                                   struct problems *problems, struct err *err)
{
    struct choices known = { .count = 0 };
    enum err_code code = runs_names_list(tx, NAME_DEVICE, "", &known, err);

    if (code == ERR_OK) {
        char hint[NEAREST_HINT_SIZE];

        problems_add_parameter(problems, PROBLEM_UNKNOWN_DEVICE, "device",
                               "there is no device '%.100s'%s; see /v1/devices", device,
                               choices_hint(&known, device, hint));
        code = err_set(err, ERR_NOT_FOUND, "no device %s", device);
    }
    choices_release(&known);
    return code;
}

/* The environment last used on the kind of CHOICE's device. */
static enum err_code find_by_device(struct tx *tx, const struct choice *choice,
                                    struct problems *problems,
                                    char ret_id[DIGEST_TEXT_SIZE], struct err *err)
{
    struct search s = { .found = false };

    if (devices_named(tx, choice->device, match_device, &s, err) != ERR_OK) {
        return err->code;
    }
    if (!s.found) {
        return refuse_device(tx, choice->device, problems, err);
    }
    if (environments_each(tx, 0, 0, ENVIRONMENTS_MAX, match_environment, &s, err) !=
        ERR_OK) {
        return err->code;
    }
    memcpy(ret_id, s.environment, sizeof s.environment);
    return s.environment[0]
               ? ERR_OK
               : err_set(err, ERR_NOT_FOUND, "nothing was run on %s", choice->device);
}

/* On a reader: the environment of CHOICE.  A device stands for the environment of its
 * first stack, or, before that ran there, for the one last used on its kind (backend and
 * model).  "": that of whatever ran last.  ERR_NOT_FOUND if nothing was run on the
 * device; a device that does not exist is added to PROBLEMS. */
static enum err_code choose_environment(struct tx *tx, const struct choice *choice,
                                        struct problems *problems,
                                        char ret_id[DIGEST_TEXT_SIZE], struct err *err)
{
    copy_text(ret_id, DIGEST_TEXT_SIZE, choice->environment);
    if (!ret_id[0] &&
        matrix_default_environment(tx, &choice->standard, ret_id, err) != ERR_OK) {
        return err->code;
    }
    return !ret_id[0] && choice->device[0]
               ? find_by_device(tx, choice, problems, ret_id, err)
               : ERR_OK;
}

/* One rendering, and what the cache knows it by. */
struct view {
    struct choice choice;
    const struct profile_table *table;
    int64_t now_ms;
    uint64_t generation;
    char *key;
    char warning[HEALTH_CONDITIONS *
                 (HEALTH_CAUSE_SIZE +
                  16)]; /* a text says first what is wrong with what it shows
                         */
    struct matrix matrix;
    struct buf body;
    char etag[ETAG_SIZE];
};

static void view_free(void *state)
{
    struct view *view = state;

    matrix_release(&view->matrix);
    buf_release(&view->body);
    free(view->key);
    free(view);
}

static void render(struct request *r, struct view *view)
{
    struct json_out out = JSON_OUT_INIT;

    if (r->format == FORMAT_TEXT) {
        if (view->warning[0]) {
            buf_printf(&view->body, "%s\n", view->warning);
        }
        matrix_text(&view->matrix, &view->body);
    } else if (r->format == FORMAT_CSV) {
        matrix_csv(&view->matrix, &view->body);
    } else {
        matrix_json(&view->matrix, &out);
        buf_putc(&out.buf, '\n');
        view->body = out.buf;
    }
    etag_of(view->body.data, view->body.length, view->etag);
}

static enum err_code read_matrix(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct view *view = r->state;
    char id[DIGEST_TEXT_SIZE];
    enum err_code code = choose_environment(tx, &view->choice, &r->problems, id, err);

    if (code == ERR_OK) {
        code = matrix_read(tx, id, &view->matrix, err);
    } else if (code == ERR_NOT_FOUND) {
        matrix_settle(&view->matrix);
    }
    if (code == ERR_NOT_FOUND && view->choice.environment[0]) {
        code = unknown_environment_parameter(tx, r, "environment",
                                             view->choice.environment, err);
        if (code != ERR_OK) {
            return code;
        }
    }
    if (r->problems.count > 0) {
        reply_problems(r);
        return ERR_OK;
    }
    if (code != ERR_OK && code != ERR_NOT_FOUND) {
        return code;
    }
    render(r, view);
    return ERR_OK;
}

static void share(struct request *r)
{
    struct view *view = r->state;
    size_t length;
    char *body = buf_detach(&view->body, &length);

    reply_shared(r,
                 cache_add(&r->api->cache, view->key, view->generation, view->now_ms,
                           view->matrix.valid_until_ms, body, length, view->etag),
                 format_content_type(r->format));
}

/* Everything that decides the body, except the store's contents and the time. */
static char *cache_key(const struct request *r, const struct view *view)
{
    const struct choice *c = &view->choice;

    return xasprintf(
        "%llu|%d|%s|%d|%s|%s|%s|%s|%lld|%s", (unsigned long long)r->api->configured,
        (int)r->format, view->table->id, (int)c->only, c->environment, c->device,
        c->standard.device, c->standard.stack, (long long)c->as_of_ms, view->warning);
}

/* A line for each condition that applies. */
static void write_warning(struct view *view, const struct health *health)
{
    size_t used = 0;

    for (int i = 0; i < HEALTH_CONDITIONS; i++) {
        if (health->conditions[i].cause[0]) {
            used += (size_t)snprintf(view->warning + used, sizeof view->warning - used,
                                     "%s: %s\n", health_name((enum health_condition)i),
                                     health->conditions[i].cause);
        }
    }
}

static void documents_get(struct request *r)
{
    const struct profile_set *profiles = r->api->hooks.profiles(r->api->hooks.arg);
    struct view *view = xcalloc(1, sizeof *view);
    struct cached *cached;
    int64_t as_of_ms;

    request_keep(r, view, view_free);
    view->now_ms = clock_wall_ms();
    param_value(r, "view"); /* refused where there is no such view */
    refuse_others(r);
    view->table = param_table(r, profiles);
    read_choice(r, view->now_ms, &view->choice);
    if (params_refused(r)) {
        return;
    }
    as_of_ms = view->choice.as_of_ms;
    if (r->format == FORMAT_TEXT) {
        write_warning(view, r->api->hooks.health(r->api->hooks.arg));
    }
    view->generation = store_generation(r->api->store);
    view->key = cache_key(r, view);
    cached = cache_find(&r->api->cache, view->key, view->generation, view->now_ms);
    if (cached) {
        reply_shared(r, cached, format_content_type(r->format));
    } else {
        matrix_init(
            &view->matrix, view->table, r->api->hooks.catalogue(r->api->hooks.arg),
            as_of_ms ? as_of_ms : view->now_ms, as_of_ms != 0, r->api->stale_after_ms);
        view->matrix.only = view->choice.only;
        request_read(r, read_matrix, share);
    }
}

void matrix_get(struct request *r)
{
    const char *view = request_parameter(r, "view");

    if (view && (strcmp(view, "environments") == 0 || strcmp(view, "devices") == 0)) {
        classes_get(r);
    } else {
        documents_get(r);
    }
}
