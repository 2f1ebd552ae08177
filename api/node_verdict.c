/* GET /v1/verdict/{host}: whether the devices of a host were seen to compute right, for
 * prologs and health checks, which have milliseconds.  Nothing is measured for it: it
 * reads what is stored of them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/reply.h"
#include "api/unknown.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"
#include "db/dissent/device_list.h"
#include "db/fleet.h"
#include "db/screening/screenings.h"

/* The worse, the greater. */
enum node_verdict { NODE_PASSED, NODE_UNVERIFIED, NODE_DISSENTS };

static const char *const names[] = { "passed", "unverified", "dissents" };

struct seen {
    char device[CASE_TITLE_SIZE];
    enum node_verdict verdict;
    bool is_there; /* now; of a host that nobody can ask, all are */
    char cause[SCREENING_WORDS_SIZE + CASE_TITLE_SIZE];
    int64_t screened_ms;
};

struct view {
    const char *host; /* of the request */
    struct seen *devices;
    int count;
    struct presence *presence;
    const struct presence_host *now; /* NULL: it is not in the configuration */
};

static void view_free(void *state)
{
    struct view *view = state;

    free(view->devices);
    presence_unref(view->presence);
    free(view);
}

static void take_device(void *arg, const struct device *device)
{
    struct view *view = arg;

    view->devices = xgrow(view->devices, view->count, sizeof *view->devices);
    view->devices[view->count] =
        (struct seen){ .verdict = NODE_UNVERIFIED, .cause = "it was never screened" };
    copy_text(view->devices[view->count++].device, CASE_TITLE_SIZE, device->id);
}

static void take_screening(void *arg, const struct screening *s)
{
    struct seen *seen = arg;

    seen->screened_ms = s->ended_ms;
    if (!s->outcome[0]) {
        snprintf(seen->cause, sizeof seen->cause, "its screening (%.64s) is %s",
                 s->reason, s->planned ? "not over" : "due");
        return;
    }
    seen->verdict = strcmp(s->outcome, screening_outcome_name(SCREENING_PASSED)) == 0
                        ? NODE_PASSED
                    : strcmp(s->outcome, screening_outcome_name(SCREENING_DISSENTS)) == 0
                        ? NODE_DISSENTS
                        : NODE_UNVERIFIED;
    copy_text(seen->cause, sizeof seen->cause, s->cause ? s->cause : "");
}

static bool is_there(const struct view *view, const char *device)
{
    const struct presence_device *now = presence_default(view->presence, device);

    return (now && now->host == view->now && now->there) || !view->now ||
           (!view->now->online && view->now->there == 0);
}

/* What any cell says now outweighs what a screening said then. */
static enum err_code judge(struct tx *tx, const struct view *view, struct seen *seen,
                           struct err *err)
{
    int64_t cells = 0, dissents = 0;

    if (screenings_of_devices(tx, seen->device, seen->device, take_screening, seen,
                              err) != ERR_OK ||
        dissenters_of_device(tx, seen->device, &cells, &dissents, err) != ERR_OK) {
        return err->code;
    }
    if (dissents > 0) {
        seen->verdict = NODE_DISSENTS;
        snprintf(seen->cause, sizeof seen->cause,
                 "it gives other bits than its equals in %" PRId64 " of %" PRId64
                 " cells",
                 dissents, cells);
    }
    seen->is_there = is_there(view, seen->device);
    return ERR_OK;
}

/* That of the worst device that is there; NULL: none is.  What was taken out of a host
 * speaks no more for it. */
static const struct seen *worst_of(const struct view *view)
{
    const struct seen *worst = NULL;

    for (int i = 0; i < view->count; i++) {
        const struct seen *seen = &view->devices[i];

        if (seen->is_there && (!worst || seen->verdict > worst->verdict)) {
            worst = seen;
        }
    }
    return worst;
}

static void reply_as_text(struct request *r, const struct view *view)
{
    const struct seen *worst = worst_of(view);
    struct buf text = BUF_INIT;

    text_line(&text, "%s", names[worst ? worst->verdict : NODE_UNVERIFIED]);
    for (int i = 0; i < view->count; i++) {
        const struct seen *seen = &view->devices[i];

        text_line(&text, "%-10s  %s: %s%s", names[seen->verdict], seen->device,
                  seen->cause, seen->is_there ? "" : " (its host does not have it now)");
    }
    reply_text(r, &text);
}

static void reply_as_json(struct request *r, const struct view *view)
{
    const struct seen *worst = worst_of(view);
    struct json_out out = JSON_OUT_INIT;

    out_open(&out, NULL, '{');
    out_text(&out, "host", view->host);
    out_text(&out, "verdict", names[worst ? worst->verdict : NODE_UNVERIFIED]);
    out_text(&out, "cause", worst ? worst->cause : "no device of it is known");
    out_bool(&out, "online", view->now && view->now->online);
    out_open(&out, "devices", '[');
    for (int i = 0; i < view->count; i++) {
        const struct seen *seen = &view->devices[i];

        out_open(&out, NULL, '{');
        out_text(&out, "device", seen->device);
        out_text(&out, "verdict", names[seen->verdict]);
        out_text(&out, "cause", seen->cause);
        out_bool(&out, "there", seen->is_there);
        out_time(&out, "screened_at", seen->screened_ms);
        out_close(&out, '}');
    }
    out_close(&out, ']');
    out_close(&out, '}');
    reply_json(r, 200, &out);
}

static enum err_code read_host(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct view *view = r->state;

    if (devices_of_host(tx, view->host, take_device, view, err) != ERR_OK) {
        return err->code;
    }
    if (view->count == 0 && !view->now) {
        return unknown_host(tx, view->host, err);
    }
    for (int i = 0; i < view->count; i++) {
        if (judge(tx, view, &view->devices[i], err) != ERR_OK) {
            return err->code;
        }
    }
    if (r->format == FORMAT_TEXT) {
        reply_as_text(r, view);
    } else {
        reply_as_json(r, view);
    }
    return ERR_OK;
}

void node_verdict_get(struct request *r)
{
    struct view *view = xcalloc(1, sizeof *view);

    request_keep(r, view, view_free);
    view->host = r->arguments[0];
    view->presence = r->api->hooks.presence(r->api->hooks.arg);
    view->now = presence_host(view->presence, view->host);
    request_read(r, read_host, NULL);
}
