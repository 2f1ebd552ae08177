/* GET /v1/peers: the services whose runs are taken, how far, and what was not. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/reply.h"
#include "daemon/base/clock.h"
#include "daemon/base/json_in.h"
#include "daemon/base/mem.h"
#include "db/peers/peer_rows.h"

struct view {
    struct json_out out;
    json_t *now; /* as api_hooks has them; those that were read are taken out */
    struct tx *tx;
    int64_t refused; /* runs of the peer that is shown */
    struct err err;
};

static void view_free(void *state)
{
    struct view *view = state;

    buf_release(&view->out.buf);
    json_decref(view->now);
    free(view);
}

static void add_refusal(void *arg, const struct peer_refused *refused)
{
    struct view *view = arg;
    struct json_out *out = &view->out;

    view->refused += refused->runs;
    out_open(out, NULL, '{');
    out_text(out, "reason", refused->reason);
    out_int(out, "runs", refused->runs);
    out_text(out, "last_run", refused->run);
    out_text(out, "cause", refused->words);
    out_time(out, "last_at", refused->at_ms);
    out_close(out, '}');
}

/* New reference; NULL: it is not configured. */
static json_t *take_now(struct view *view, const char *name)
{
    size_t i;
    json_t *peer;

    json_array_foreach(view->now, i, peer)
    {
        if (strcmp(in_text_or_empty(peer, "name"), name) == 0) {
            json_incref(peer);
            json_array_remove(view->now, i);
            return peer;
        }
    }
    return NULL;
}

static void add_state(struct json_out *out, const json_t *now)
{
    out_text(out, "state", now ? in_text_or_empty(now, "state") : "not_configured");
    out_name(out, "cause", in_text_or_empty(now, "cause"));
    out_time(out, "since", in_int(now, "since"));
}

static void add_peer(struct view *view, const struct peer_progress *p, const json_t *now)
{
    struct json_out *out = &view->out;
    int64_t lag_ms = clock_wall_ms() - p->caught_up_ms;

    out_open(out, NULL, '{');
    out_text(out, "name", p->name);
    add_state(out, now);
    out_name(out, "service", p->service);
    out_name(out, "reprod", p->reprod);
    out_name(out, "cursor", p->cursor);
    out_time(out, "pulled_at", p->pulled_ms);
    out_time(out, "caught_up_at", p->caught_up_ms);
    out_int_if(out, "lag_seconds", p->caught_up_ms > 0, lag_ms > 0 ? lag_ms / 1000 : 0);
    out_name(out, "waits_for", p->waits_for);
    out_int(out, "taken", p->taken);
    out_int(out, "known", p->known);
    out_int(out, "folded", p->folded);
    out_int(out, "of_peers", p->of_peers);
    view->refused = 0;
    out_open(out, "refusals", '[');
    if (view->err.code == ERR_OK) {
        peers_each_refusal(view->tx, p->name, add_refusal, view, &view->err);
    }
    out_close(out, ']');
    out_int(out, "refused", view->refused);
    out_close(out, '}');
}

static void show_peer(void *arg, const struct peer_progress *progress)
{
    struct view *view = arg;
    json_t *now = take_now(view, progress->name);

    add_peer(view, progress, now);
    json_decref(now);
}

static void show_unread(struct view *view)
{
    size_t i;
    json_t *unread;

    json_array_foreach(view->now, i, unread)
    {
        struct peer_progress none = { .name = "" };

        copy_text(none.name, sizeof none.name, in_text_or_empty(unread, "name"));
        add_peer(view, &none, unread);
    }
}

static enum err_code read_peers(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct view *view = r->state;

    view->tx = tx;
    view->err.code = ERR_OK;
    list_open(&view->out);
    if (peers_each(tx, show_peer, view, err) != ERR_OK) {
        return err->code;
    }
    show_unread(view);
    if (view->err.code != ERR_OK) {
        *err = view->err;
        return err->code;
    }
    list_reply(r, &view->out);
    return ERR_OK;
}

void peers_get(struct request *r)
{
    struct view *view = xcalloc(1, sizeof *view);

    request_keep(r, view, view_free);
    view->out = (struct json_out)JSON_OUT_INIT;
    view->now = r->api->hooks.peers(r->api->hooks.arg);
    request_read(r, read_peers, NULL);
}
