/* GET /v1/hosts: what the database has seen, completed with what the fleet has now. */
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/reply.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"
#include "db/fleet.h"

struct view {
    struct json_out out;
    struct presence *presence;
    bool *shown; /* which of its hosts are */
};

static void view_free(void *state)
{
    struct view *view = state;

    buf_release(&view->out.buf);
    presence_unref(view->presence);
    free(view->shown);
    free(view);
}

/* What the engine says that starts its agent. */
static void node_json(struct json_out *out, const json_t *node)
{
    char *text = node ? json_dumps(node, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    out_json(out, "node", text);
    free(text);
}

static void host_json(struct json_out *out, const struct host *host,
                      const struct presence_host *now)
{
    out_open(out, NULL, '{');
    out_text(out, "name", host->name);
    out_bool(out, "online", now && now->online);
    out_text(out, "state", now ? now->state : "offline");
    out_time(out, "since", now ? now->since_ms : 0);
    out_text(out, "cause", now ? now->cause : "it is not in the configuration");
    node_json(out, now ? now->node : NULL);
    out_name(out, "boot_id", host->boot_id);
    out_time(out, "first_seen_at", host->first_seen_ms);
    out_time(out, "last_seen_at", host->last_seen_ms);
    out_close(out, '}');
}

static void show_host(void *arg, const struct host *host)
{
    struct view *view = arg;

    const struct presence_host *now = presence_host(view->presence, host->name);

    host_json(&view->out, host, now);
    if (now) {
        view->shown[now - view->presence->hosts] = true;
    }
}

/* Those that have never been taken in. */
static void show_unseen_hosts(struct view *view)
{
    for (int i = 0; i < view->presence->host_count; i++) {
        const struct presence_host *now = &view->presence->hosts[i];
        struct host unseen = { .name = "" };

        if (!view->shown[i]) {
            copy_text(unseen.name, sizeof unseen.name, now->name);
            host_json(&view->out, &unseen, now);
        }
    }
}

static enum err_code read_hosts(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct view *view = r->state;

    list_open(&view->out);
    if (hosts_each(tx, show_host, view, err) != ERR_OK) {
        return err->code;
    }
    show_unseen_hosts(view);
    list_reply(r, &view->out);
    return ERR_OK;
}

void hosts_get(struct request *r)
{
    struct view *view = xcalloc(1, sizeof *view);

    view->out = (struct json_out)JSON_OUT_INIT;
    request_keep(r, view, view_free);
    view->presence = r->api->hooks.presence(r->api->hooks.arg);
    view->shown = xcalloc((size_t)view->presence->host_count + 1, sizeof *view->shown);
    request_read(r, read_hosts, NULL);
}
