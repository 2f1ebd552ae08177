/* GET /metrics: figures for Prometheus.  They come from cells, changes and open jobs,
 * never from all runs, so a scrape costs the same however many there are; those of a
 * large fleet are told for a while (api/http/renew.h).  While the database fails, what is
 * known without it is told. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/cache.h"
#include "api/http/handlers.h"
#include "api/http/renew.h"
#include "api/http/reply.h"
#include "api/render/metrics.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"
#include "db/events.h"
#include "db/jobs.h"

struct scrape {
    struct figures figures;
    char *key;
    struct buf body;
    char etag[ETAG_SIZE];
    int64_t now_ms, stale_after_ms;
    int64_t age_ms; /* how old it may be told */
    char *stacks;   /* as text, as in struct api_figures */
};

static void scrape_free(void *state)
{
    struct scrape *s = state;

    free(s->stacks);
    free(s->key);
    buf_release(&s->body);
    free(s);
}

static void take_dissenter(void *arg, const char *device, int64_t cells)
{
    struct figures *f = arg;

    if (f->dissenting++ < FIGURES_LISTED) {
        copy_text(f->dissenters[f->dissenter_count].device, CASE_TITLE_SIZE, device);
        f->dissenters[f->dissenter_count++].cells = cells;
    }
}

static void take_job(void *arg, const struct job *job)
{
    struct figures *f = arg;

    f->jobs[job->state]++;
    f->runs_waiting += job->runs_total - job->runs_done;
}

static void take_regressed(void *arg, const struct regressed_cell *cell)
{
    figures_add_regressed(arg, cell);
}

/* Changes of hosts, copied: what went back is asked after they were read. */
struct reported {
    char host[CASE_TITLE_SIZE];
    json_t *reports;
    int64_t at_ms;
};

struct reported_list {
    struct reported *list;
    int count;
};

static void take_reported(void *arg, const struct reported_change *change)
{
    struct reported_list *all = arg;
    struct reported *r;

    all->list = xgrow(all->list, all->count, sizeof *all->list);
    r = &all->list[all->count++];
    copy_text(r->host, sizeof r->host, change->host);
    r->reports = json_loads(change->reports, 0, NULL);
    r->at_ms = change->at_ms;
}

static void copy_member(char *to, size_t size, const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    copy_text(to, size, text ? text : "");
}

static bool parse_kind(const char *name, enum drift_kind *ret_kind)
{
    for (int k = 0; name && k < FIGURES_DRIFT_KINDS; k++) {
        if (strcmp(drift_kind_name((enum drift_kind)k), name) == 0) {
            *ret_kind = (enum drift_kind)k;
            return true;
        }
    }
    return false;
}

/* Reports of earlier versions name no cases. */
static void add_cases(struct figures *f, const char *host, const json_t *report)
{
    size_t i;
    json_t *one;

    json_array_foreach(json_object_get(report, "cases"), i, one)
    {
        struct case_drift *c = &f->drifted_cases[f->drifted_case_count];
        const char *seed = json_string_value(json_object_get(one, "seed"));

        if (f->drifted_case_count == FIGURES_LISTED) {
            return;
        }
        if (seed &&
            parse_kind(json_string_value(json_object_get(one, "kind")), &c->kind)) {
            copy_text(c->host, sizeof c->host, host);
            copy_member(c->from, sizeof c->from, report, "from");
            copy_member(c->to, sizeof c->to, report, "to");
            copy_member(c->key.workload, CASE_NAME_SIZE, one, "workload");
            copy_member(c->key.variant, CASE_NAME_SIZE, one, "variant");
            copy_member(c->key.size, CASE_NAME_SIZE, one, "size");
            copy_member(c->key.dtype, CASE_NAME_SIZE, one, "dtype");
            c->key.seed = strtoull(seed, NULL, 10);
            f->drifted_case_count++;
        }
    }
}

static enum err_code add_report(struct tx *tx, struct figures *f, const json_t *report,
                                struct host_drift *drift, struct err *err)
{
    const json_t *counts = json_object_get(report, "counts");
    const char *from = json_string_value(json_object_get(report, "from"));
    const char *to = json_string_value(json_object_get(report, "to"));
    bool back = false;

    if (!from || !to ||
        figures_went_back(tx, drift->host, from, to, &back, err) != ERR_OK || back) {
        return from && to ? err->code : ERR_OK;
    }
    for (int k = 0; k < FIGURES_DRIFT_KINDS; k++) {
        drift->kinds[k] += json_integer_value(
            json_object_get(counts, drift_kind_name((enum drift_kind)k)));
    }
    add_cases(f, drift->host, report);
    return ERR_OK;
}

static enum err_code collect_drift(struct tx *tx, struct figures *f, struct err *err)
{
    struct reported_list all = { NULL, 0 };
    enum err_code code = figures_each_reported(tx, take_reported, &all, err);

    for (int i = 0; i < all.count; i++) {
        struct host_drift drift = { .at_ms = all.list[i].at_ms };
        size_t n;
        json_t *report;

        copy_text(drift.host, sizeof drift.host, all.list[i].host);
        json_array_foreach(all.list[i].reports, n, report)
        {
            code = code == ERR_OK ? add_report(tx, f, report, &drift, err) : code;
        }
        figures_add_drift(f, &drift);
        json_decref(all.list[i].reports);
    }
    free(all.list);
    return code;
}

static enum err_code collect(struct tx *tx, struct scrape *s, struct err *err)
{
    struct figures *f = &s->figures;

    if (figures_of_cells(tx, s->now_ms, s->stale_after_ms, &f->cells, err) != ERR_OK ||
        jobs_each_open(tx, take_job, f, err) != ERR_OK ||
        events_last(tx, &f->events, err) != ERR_OK ||
        figures_each_regressed(tx, s->stacks, take_regressed, f, err) != ERR_OK ||
        figures_each_dissenter(tx, s->stacks, take_dissenter, f, err) != ERR_OK ||
        screenings_count(tx, &f->screenings, err) != ERR_OK ||
        webhooks_figures(tx, &f->webhooks, err) != ERR_OK ||
        figures_open_changes(tx, &f->changes_seen, &f->changes_measuring, err) !=
            ERR_OK) {
        return err->code;
    }
    return collect_drift(tx, f, err);
}

static const char *content_type(const struct request *r)
{
    return r->format == FORMAT_OPENMETRICS ? format_content_type(r->format)
                                           : "text/plain; version=0.0.4; charset=utf-8";
}

static void write_figures(const struct request *r, bool whole, struct buf *body)
{
    const struct scrape *s = r->state;

    metrics_text(&s->figures, r->api->options.version, whole,
                 r->format == FORMAT_OPENMETRICS, body);
}

static void reply_without_store(struct request *r)
{
    struct buf buf = BUF_INIT;

    write_figures(r, false, &buf);
    reply_text(r, &buf);
    r->reply.content_type = content_type(r);
}

static enum err_code read_figures(struct tx *tx, void *arg, struct err *err)
{
    struct request *r = arg;
    struct scrape *s = r->state;
    struct buf text = BUF_INIT;

    if (collect(tx, s, err) != ERR_OK) {
        return err->code;
    }
    write_figures(r, true, &text);
    text_show(&s->body, text.data, text.length, "\n\t");
    buf_release(&text);
    etag_of(s->body.data, s->body.length, s->etag);
    return ERR_OK;
}

/* Kept for who scrapes next only where that may be old: what the loop knows changes
 * without the store. */
static void share(struct request *r)
{
    struct scrape *s = r->state;
    size_t length;
    char *body = buf_detach(&s->body, &length);

    reply_shared(r,
                 s->age_ms ? cache_add(&r->api->cache, s->key, 0, s->now_ms, 0, body,
                                       length, s->etag)
                           : cached_new(body, length, s->etag),
                 content_type(r));
}

static void take_health(struct figures *f, const struct health *health)
{
    f->ready = health_ready(health);
    for (int i = 0; i < HEALTH_CONDITIONS; i++) {
        copy_text(f->causes[i], HEALTH_CAUSE_SIZE, health->conditions[i].cause);
    }
}

/* The conditions may say by now what made the read fail. */
static void reply_service_instead(struct request *r, const struct err *why)
{
    struct scrape *s = r->state;

    log_error("api: GET /metrics: %s", why->message);
    take_health(&s->figures, r->api->hooks.health(r->api->hooks.arg));
    reply_without_store(r);
}

static void take_fleet(struct figures *f, const struct api *api)
{
    const struct device_stack *devices;
    int entries = api->hooks.devices(api->hooks.arg, &devices);
    json_t *foreign = api->hooks.foreign(api->hooks.arg);
    size_t i;
    json_t *host;

    for (int d = 0; d < entries; d++) {
        f->devices += devices[d].is_default;
        f->devices_online += devices[d].is_default && devices[d].online;
        f->devices_released += devices[d].is_default && devices[d].released;
        f->devices_withheld += devices[d].is_default && !devices[d].online &&
                               strcmp(devices[d].state, "withheld") == 0;
    }
    json_array_foreach(foreign, i, host)
    {
        f->devices_foreign += json_array_size(json_object_get(host, "processes")) > 0;
    }
    json_decref(foreign);
}

static void take_service(struct scrape *s, struct api *api)
{
    struct figures *f = &s->figures;
    struct api_figures own = { .stacks = NULL };

    take_health(f, api->hooks.health(api->hooks.arg));
    take_fleet(f, api);
    api->hooks.figures(api->hooks.arg, &own);
    s->stacks = json_dumps(own.stacks, JSON_COMPACT);
    json_decref(own.stacks);
    f->hosts = own.hosts;
    f->hosts_online = own.hosts_online;
    f->hosts_waiting = own.hosts_waiting;
    f->weakest_bound = own.weakest_bound;
    f->background_spent_ms = own.background_spent_ms;
    f->backup_ms = own.backup_ms;
    f->backup_every_ms = own.backup_every_ms;
    f->streams = api->streams.count;
    f->made_room = api->connections.made_room;
    f->overdue = api->connections.overdue;
    f->joined = api->joined;
    f->refused = api->refused;
    f->connections = MHD_get_daemon_info(api->mhd, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)
                         ->num_connections;
    f->generation = store_generation(api->store);
}

/* Returns whether what a large fleet told a short time ago is the reply. */
static bool show_made(struct request *r)
{
    const struct scrape *s = r->state;
    bool renew;
    struct cached *cached =
        cache_find_old(&r->api->cache, s->key, s->age_ms, s->now_ms, &renew);

    if (cached) {
        reply_shared(r, cached, content_type(r));
    }
    if (renew) {
        take_service(r->state, r->api);
        request_renew(r, read_figures, share);
    }
    return cached != NULL;
}

void metrics_get(struct request *r)
{
    struct scrape *s = xcalloc(1, sizeof *s);

    request_keep(r, s, scrape_free);
    s->now_ms = clock_wall_ms();
    s->stale_after_ms = r->api->stale_after_ms;
    s->age_ms = renew_age_ms(r);
    s->key = xasprintf("metrics|%llu|%d", (unsigned long long)r->api->configured,
                       (int)r->format);
    if (!health_ready(r->api->hooks.health(r->api->hooks.arg)) || !show_made(r)) {
        take_service(s, r->api);
        r->failed = reply_service_instead;
        if (s->figures.causes[HEALTH_STORAGE][0]) {
            reply_without_store(r);
        } else {
            request_read(r, read_figures, share);
        }
    }
}
