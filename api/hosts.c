/* GET /v1/hosts: what the database has seen, completed with what the fleet has now. */
#include <jansson.h>
#include <stdlib.h>

#include "api/http/handlers.h"
#include "api/http/page.h"
#include "api/http/reply.h"
#include "daemon/base/lookup.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"
#include "db/fleet.h"

struct view {
    struct json_out out;
    json_t *hosts;            /* as of api_hooks */
    struct lookup configured; /* their names: each, until it was shown */
};

static void view_free(void *state)
{
    struct view *view = state;

    buf_release(&view->out.buf);
    lookup_release(&view->configured);
    json_decref(view->hosts);
    free(view);
}

static const char *name_of(const json_t *configured)
{
    return json_string_value(json_object_get(configured, "name"));
}

static const char *cause_of(const json_t *configured)
{
    return configured ? json_string_value(json_object_get(configured, "cause"))
                      : "it is not in the configuration";
}

/* What the engine says that starts its agent. */
static void node_json(struct json_out *out, const json_t *node)
{
    char *text = node ? json_dumps(node, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    out_json(out, "node", text);
    free(text);
}

static void host_json(struct json_out *out, const struct host *host,
                      const json_t *configured)
{
    out_open(out, NULL, '{');
    out_text(out, "name", host->name);
    out_bool(out, "online", json_is_true(json_object_get(configured, "online")));
    out_text(out, "state",
             configured ? json_string_value(json_object_get(configured, "state"))
                        : "offline");
    out_text(out, "since", json_string_value(json_object_get(configured, "since")));
    out_text(out, "cause", cause_of(configured));
    node_json(out, json_object_get(configured, "node"));
    out_name(out, "boot_id", host->boot_id);
    out_time(out, "first_seen_at", host->first_seen_ms);
    out_time(out, "last_seen_at", host->last_seen_ms);
    out_close(out, '}');
}

static void show_host(void *arg, const struct host *host)
{
    struct view *view = arg;

    host_json(&view->out, host, lookup_get(&view->configured, host->name));
    lookup_remove(&view->configured, host->name);
}

/* Those that have never been taken in. */
static void show_unseen_hosts(struct view *view)
{
    size_t i;
    json_t *host;

    json_array_foreach(view->hosts, i, host)
    {
        struct host unseen = { .name = "" };

        if (lookup_get(&view->configured, name_of(host))) {
            copy_text(unseen.name, sizeof unseen.name, name_of(host));
            host_json(&view->out, &unseen, host);
        }
    }
}

static enum err_code read_hosts(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct view *view = r->state;
    size_t i;
    json_t *host;

    json_array_foreach(view->hosts, i, host)
    {
        lookup_put(&view->configured, name_of(host), host);
    }
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
    view->hosts = r->api->hooks.hosts(r->api->hooks.arg, NULL);
    request_read(r, read_hosts, NULL);
}
