/* GET /v1/devices and /v1/stacks: what the database has seen, completed with what is
 * online now. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/params.h"
#include "api/http/reply.h"
#include "api/render/nouns_json.h"
#include "api/unknown.h"
#include "daemon/base/choices.h"
#include "daemon/base/mem.h"
#include "db/dissent/device_list.h"
#include "db/fleet.h"
#include "db/screening/screenings.h"

/* A device that is shown, as the database has it. */
struct row {
    struct device device; /* with attributes of its own */
    char *attributes, *screening;
};

struct view {
    struct page page; /* of the list of devices */
    int64_t before;   /* devices on the pages before */
    int64_t number;   /* of the device that is looked at */
    bool as_text;
    bool dissenting; /* only devices that dissent: these */
    struct choices dissenters;
    struct presence *presence;
    const char *only; /* NULL: all are shown */
    struct row *rows; /* by id; while it reads, as are these */
    struct device_dissents *dissents;
    int count;
    struct tx *tx;
};

enum { DISSENTS_SHOWN = 100, DISSENTS_IN_TEXT = 8, DISSENTERS_MAX = 100000 };

static void show_dissent(void *arg, const struct dissenter *d)
{
    struct json_out *out = arg;

    out_open(out, NULL, '{');
    out_int(out, "cell", d->cell);
    case_json(out, &d->key);
    out_text(out, "environment", d->environment);
    out_time(out, "named_at", d->since_ms);
    out_text(out, "reason", d->reason);
    out_format(out, "href", "/v1/cells/%" PRId64, d->cell);
    out_close(out, '}');
}

/* In how many cases it dissents; for one device, in which. */
static enum err_code dissents_json(struct view *view, const struct device_dissents *d,
                                   struct err *err)
{
    struct json_out *out = &view->page.out;
    enum err_code code = ERR_OK;

    out_int(out, "cells", d->cells);
    out_int(out, "dissents", d->dissents);
    if (view->only) {
        out_open(out, "dissents_in", '[');
        code = dissenters_each(view->tx, d->device, 0,
                               view->as_text ? DISSENTS_IN_TEXT : DISSENTS_SHOWN,
                               show_dissent, out, err);
        out_close(out, ']');
    }
    return code;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(a, ((const struct row *)b)->device.id);
}

static void take_screening(void *arg, const struct screening *s)
{
    struct view *view = arg;
    struct row *row =
        bsearch(s->device, view->rows, (size_t)view->count, sizeof *view->rows, by_id);
    struct json_out out = JSON_OUT_INIT;

    if (!row) {
        return;
    }
    out_open(&out, NULL, '{');
    out_text(&out, "state",
             s->outcome[0] ? s->outcome
             : s->planned  ? "measuring"
                           : "due");
    out_text(&out, "reason", s->reason);
    out_text(&out, "text", s->words);
    out_time(&out, "since", s->at_ms);
    out_json(&out, "jobs", s->jobs);
    out_name(&out, "cause", s->cause);
    out_json(&out, "counts", s->counts[0] ? s->counts : "null");
    out_time(&out, "screened_at", s->ended_ms);
    out_close(&out, '}');
    row->screening = buf_detach(&out.buf, NULL);
}

/* Who else uses it, as far as its agent tells. */
static void foreign_json(const struct view *view, struct json_out *out,
                         const char *device)
{
    const struct presence_foreign *f = presence_foreign(view->presence, device);
    char *processes;

    if (!out_object(out, "foreign", f != NULL)) {
        return;
    }
    processes = f->processes ? json_dumps(f->processes, JSON_COMPACT) : NULL;
    out_text(out, "device", f->device);
    out_json(out, "processes", processes);
    out_text(out, "cause", f->cause);
    out_time(out, "since", f->since_ms);
    out_bool(out, "waits", f->waits);
    out_close(out, '}');
    free(processes);
}

static void view_free(void *state)
{
    struct view *view = state;

    presence_unref(view->presence);
    choices_release(&view->dissenters);
}

static struct view *keep_view(struct request *r)
{
    struct view *view = page_new(r, sizeof *view, 'u');

    view->page.release = view_free;
    view->only = r->arguments[0];
    view->presence = r->api->hooks.presence(r->api->hooks.arg);
    return view;
}

static void stacks_of(struct json_out *out, const struct view *view, const char *id)
{
    out_open(out, "stacks", '[');
    for (const struct presence_device *each = presence_first(view->presence, id); each;
         each = each->next) {
        out_text(out, NULL, each->stack);
    }
    out_close(out, ']');
}

/* Takes the room of the list's page, too. */
static bool is_on_page(struct view *view, const struct device *device)
{
    if (view->dissenting && !choices_hold(&view->dissenters, device->id)) {
        return false;
    }
    return ++view->number > view->before &&
           page_takes(&view->page, "%" PRId64, view->number);
}

static void take_device(void *arg, const struct device *device)
{
    struct view *view = arg;
    struct row *row;

    if (!view->only && !is_on_page(view, device)) {
        return;
    }
    view->rows = xgrow(view->rows, view->count, sizeof *view->rows);
    row = &view->rows[view->count++];
    *row =
        (struct row){ .device = *device, .attributes = xstrdup(device->attributes_json) };
}

static enum err_code show_row(struct view *view, int i, struct err *err)
{
    struct json_out *out = &view->page.out;
    const struct row *row = &view->rows[i];
    const struct device *device = &row->device;
    const struct presence_device *now = presence_default(view->presence, device->id);

    out_open(out, NULL, '{');
    out_text(out, "id", device->id);
    out_text(out, "host", device->host);
    out_text(out, "backend", device->backend);
    out_text(out, "model", device->model);
    out_text(out, "stack", now ? now->stack : NULL);
    stacks_of(out, view, device->id);
    out_bool(out, "online", now && now->online);
    out_text(out, "state", now ? now->host->state : "offline");
    out_text(out, "cause", now ? now->cause : "no host has it now");
    out_json(out, "attributes", row->attributes);
    if (dissents_json(view, &view->dissents[i], err) != ERR_OK) {
        return err->code;
    }
    out_json(out, "screening", row->screening);
    foreign_json(view, out, device->id);
    out_time(out, "first_seen_at", device->first_seen_ms);
    out_time(out, "last_seen_at", device->last_seen_ms);
    out_close(out, '}');
    return ERR_OK;
}

/* What the database says of the rows beyond themselves: of those that are next to each
 * other, at once. */
static enum err_code complete_rows(struct tx *tx, struct view *view, struct err *err)
{
    int at_once = view->dissenting ? 1 : view->count;

    view->dissents = xcalloc((size_t)view->count + 1, sizeof *view->dissents);
    for (int i = 0; i < view->count; i++) {
        view->dissents[i].device = view->rows[i].device.id;
    }
    for (int i = 0; i < view->count; i += at_once) {
        struct device_dissents *first = &view->dissents[i];

        if (dissenters_of_devices(tx, first, at_once, err) != ERR_OK ||
            screenings_of_devices(tx, first->device, first[at_once - 1].device,
                                  take_screening, view, err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

static void release_rows(struct view *view)
{
    for (int i = 0; i < view->count; i++) {
        free(view->rows[i].attributes);
        free(view->rows[i].screening);
    }
    free(view->rows);
    free(view->dissents);
    view->rows = NULL;
    view->dissents = NULL;
}

static void take_dissenter(void *arg, const char *device, int64_t cells)
{
    (void)cells;
    choices_add(arg, device);
}

/* Those of the page. */
static enum err_code read_page(struct tx *tx, struct view *view, struct err *err)
{
    if (view->dissenting) {
        return dissenters_worst(tx, DISSENTERS_MAX, take_dissenter, &view->dissenters,
                                err) == ERR_OK
                   ? devices_each(tx, take_device, view, err)
                   : err->code;
    }
    view->number = view->before;
    return devices_page(tx, view->before, page_rows(&view->page), take_device, view, err);
}

static enum err_code read_rows(struct tx *tx, struct view *view, struct err *err)
{
    enum err_code code = view->only
                             ? devices_named(tx, view->only, take_device, view, err)
                             : read_page(tx, view, err);

    if (code == ERR_OK) {
        code = complete_rows(tx, view, err);
    }
    for (int i = 0; i < view->count && code == ERR_OK; i++) {
        code = show_row(view, i, err);
    }
    release_rows(view);
    return code;
}

/* A page of all devices, or the one that the path names. */
static enum err_code read_devices(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct view *view = r->state;

    view->as_text = r->format == FORMAT_TEXT;
    view->tx = tx;
    if (!view->only) {
        list_open(&view->page.out);
    }
    if (read_rows(tx, view, err) != ERR_OK) {
        return err->code;
    }
    if (!view->only) {
        page_reply(r, &view->page);
    } else if (view->count == 0) {
        return unknown_device(tx, view->only, err);
    } else {
        reply_json(r, 200, &view->page.out);
    }
    return ERR_OK;
}

void devices_get(struct request *r)
{
    struct view *view = keep_view(r);

    view->before = param_cursor_number(r, 'u');
    view->dissenting = param_value(r, "dissents") != NULL;
    if (!params_refused(r)) {
        request_read(r, read_devices, NULL);
    }
}

void devices_get_one(struct request *r)
{
    keep_view(r);
    request_read(r, read_devices, NULL);
}

void stacks_get(struct request *r)
{
    json_t *stacks = r->api->hooks.stacks(r->api->hooks.arg);
    struct json_out out = JSON_OUT_INIT;

    list_open(&out);
    for (size_t i = 0; i < json_array_size(stacks); i++) {
        char *text = json_dumps(json_array_get(stacks, i), JSON_COMPACT);

        out_json(&out, NULL, text);
        free(text);
    }
    json_decref(stacks);
    list_reply(r, &out);
}
