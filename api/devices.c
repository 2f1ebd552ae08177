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
#include "db/dissent/device_list.h"
#include "db/fleet.h"
#include "db/screening/screenings.h"

struct view {
    struct page page; /* of the list of devices */
    int64_t before;   /* devices on the pages before */
    int64_t number;   /* of the device that is looked at */
    bool as_text;
    bool dissenting; /* only devices that dissent: these */
    struct choices dissenters;
    struct presence *presence;
    const char *only; /* NULL: all are shown */
    int shown;
    struct tx *tx; /* while it reads */
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
static void dissents_json(struct view *view, const char *device)
{
    struct json_out *out = &view->page.out;
    int64_t cells = 0, dissents = 0;
    struct err err;

    dissenters_of_device(view->tx, device, &cells, &dissents, &err);
    out_int(out, "cells", cells);
    out_int(out, "dissents", dissents);
    if (view->only) {
        out_open(out, "dissents_in", '[');
        dissenters_each(view->tx, device, 0,
                        view->as_text ? DISSENTS_IN_TEXT : DISSENTS_SHOWN, show_dissent,
                        out, &err);
        out_close(out, ']');
    }
}

static void show_screening(void *arg, const struct screening *s)
{
    struct json_out *out = arg;

    out_open(out, "screening", '{');
    out_text(out, "state", s->outcome[0] ? s->outcome : s->planned ? "measuring" : "due");
    out_text(out, "reason", s->reason);
    out_text(out, "text", s->words);
    out_time(out, "since", s->at_ms);
    out_json(out, "jobs", s->jobs);
    out_name(out, "cause", s->cause);
    out_json(out, "counts", s->counts[0] ? s->counts : "null");
    out_time(out, "screened_at", s->ended_ms);
    out_close(out, '}');
}

static void screening_json(struct view *view, const char *device)
{
    struct err err;
    size_t before = view->page.out.buf.length;

    screenings_of_device(view->tx, device, show_screening, &view->page.out, &err);
    if (view->page.out.buf.length == before) {
        out_text(&view->page.out, "screening", NULL);
    }
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

static void show_device(void *arg, const struct device *device)
{
    struct view *view = arg;
    struct json_out *out = &view->page.out;
    const struct presence_device *now;

    if (!view->only && !is_on_page(view, device)) {
        return;
    }
    now = presence_default(view->presence, device->id);
    view->shown++;
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
    out_json(out, "attributes", device->attributes_json);
    dissents_json(view, device->id);
    screening_json(view, device->id);
    foreign_json(view, out, device->id);
    out_time(out, "first_seen_at", device->first_seen_ms);
    out_time(out, "last_seen_at", device->last_seen_ms);
    out_close(out, '}');
}

static void take_dissenter(void *arg, const char *device, int64_t cells)
{
    (void)cells;
    choices_add(arg, device);
}

/* Those that may be on the page. */
static enum err_code read_page(struct tx *tx, struct view *view, struct err *err)
{
    list_open(&view->page.out);
    if (view->dissenting) {
        return dissenters_worst(tx, DISSENTERS_MAX, take_dissenter, &view->dissenters,
                                err) == ERR_OK
                   ? devices_each(tx, show_device, view, err)
                   : err->code;
    }
    view->number = view->before;
    return devices_page(tx, view->before, page_rows(&view->page), show_device, view, err);
}

/* A page of all devices, or the one that the path names. */
static enum err_code read_devices(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct view *view = r->state;

    view->as_text = r->format == FORMAT_TEXT;
    view->tx = tx;
    if ((view->only ? devices_named(tx, view->only, show_device, view, err)
                    : read_page(tx, view, err)) != ERR_OK) {
        return err->code;
    }
    if (!view->only) {
        page_reply(r, &view->page);
    } else if (view->shown == 0) {
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
