/* SIGHUP: the configuration is read again, and what can change while the service runs
 * does.  service_reload of daemon/service.h.
 *
 * The happy path: a thread reads the files; back on the loop, tables are checked against
 * the workloads that the hosts have; then all of it is taken over at once.
 * What can go wrong: a file cannot be read or is wrong, or a table names a workload that
 * no host has.  Then nothing changes. */
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/commands.h"
#include "daemon/service.h"

struct reload {
    uv_work_t work;
    struct service *service;
    struct config config;
    struct profile_set *profiles;
    struct verified_set *verified;
    struct err err;
    struct reload *next; /* of those that were replaced */
};

static void reload_free(struct reload *r)
{
    config_release(&r->config);
    profile_set_free(r->profiles);
    verified_set_free(r->verified);
    free(r);
}

/* On a thread of its own. */
static void read_files(uv_work_t *work)
{
    struct reload *r = work->data;
    const char *argument;

    if (options_read(r->service->argc, r->service->argv, &r->config, &argument,
                     &r->err) == ERR_OK &&
        profile_set_load(r->config.profiles, &r->profiles, &r->err) == ERR_OK) {
        verified_set_load(r->config.gpu_reports, &r->verified, &r->err);
    }
}

static int tell_later(const char *name, bool same)
{
    if (!same) {
        log_warning("reload: '%s' is another one now: it takes effect at the next start",
                    name);
    }
    return !same;
}

static bool is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Of what cannot change now; returns how many differ. */
static int tell_what_waits(const struct config *old, const struct config *new)
{
    return tell_later("listen",
                      strcmp(old->address, new->address) == 0 && old->port == new->port) +
           tell_later("data", strcmp(old->data, new->data) == 0) +
           tell_later("connection_limit",
                      old->connection_limit == new->connection_limit) +
           tell_later("open_items_limit",
                      old->open_items_limit == new->open_items_limit) +
           tell_later("backup_every_hours",
                      old->backup_every_hours == new->backup_every_hours) +
           tell_later("grace_ms", old->grace_ms == new->grace_ms) +
           tell_later("webhook_ca", is_same(old->webhook_ca, new->webhook_ca)) +
           tell_later("stacks", json_equal(old->stacks, new->stacks)) +
           tell_later("hosts", json_equal(old->hosts, new->hosts)) +
           tell_later("slurm", old->slurm.every_seconds == new->slurm.every_seconds) +
           tell_later("peers", json_equal(old->peers, new->peers)) +
           tell_later("workloads", json_equal(old->workloads, new->workloads));
}

#define SWAP(type, a, b)                                                                 \
    do {                                                                                 \
        type kept = (a);                                                                 \
        (a) = (b);                                                                       \
        (b) = kept;                                                                      \
    } while (0)

/* R has what was replaced afterwards. */
static void take_over(struct service *s, struct reload *r)
{
    int64_t stale_after_ms = (int64_t)r->config.stale_after_hours * 3600 * 1000;

    if (s->config.survey != r->config.survey) {
        log_info("reload: survey: %s", r->config.survey ? "true" : "false");
    }
    if (s->config.stale_after_hours != r->config.stale_after_hours) {
        log_info("reload: stale_after_hours: %d", r->config.stale_after_hours);
    }
    if (s->config.retention_days != r->config.retention_days ||
        s->config.retention_runs != r->config.retention_runs) {
        log_info("reload: retention_days: %d, retention_runs: %d",
                 r->config.retention_days, r->config.retention_runs);
        s->folded_ms = 0; /* at once */
    }
    s->config.retention_days = r->config.retention_days;
    s->config.retention_runs = r->config.retention_runs;
    s->config.survey = r->config.survey;
    s->config.stale_after_hours = r->config.stale_after_hours;
    s->config.background = r->config.background;
    s->config.screening = r->config.screening;
    s->config.foreign_waits = r->config.foreign_waits;
    service_configure_background(s);
    SWAP(struct webhook *, s->config.webhooks, r->config.webhooks);
    SWAP(int, s->config.webhook_count, r->config.webhook_count);
    s->config.webhook_networks = r->config.webhook_networks;
    service_configure_webhooks(s);
    SWAP(json_t *, s->config.profiles, r->config.profiles);
    SWAP(json_t *, s->config.gpu_reports, r->config.gpu_reports);
    SWAP(struct profile_set *, s->profiles, r->profiles);
    SWAP(struct verified_set *, s->verified, r->verified);
    api_reconfigure(s->api, stale_after_ms);
    survey_watch_configure(s->watch, s->profiles, stale_after_ms);
    service_screen(s);
}

static enum err_code check(struct service *s, struct reload *r)
{
    if (r->err.code == ERR_OK && !fleet_settled(s->fleet)) {
        return err_set(&r->err, ERR_BUSY,
                       "not every host has said which workloads it has; try again");
    }
    return r->err.code == ERR_OK
               ? profile_set_check(r->profiles, fleet_catalogue(s->fleet), &r->err)
               : r->err.code;
}

static void files_were_read(uv_work_t *work, int status)
{
    struct reload *r = work->data;
    struct service *s = r->service;

    (void)status;
    s->reload = NULL;
    if (s->stopping.stage != STOPPING_NOT) {
        reload_free(r);
        return;
    }
    if (check(s, r) != ERR_OK) {
        log_error("reload: the configuration stays as it was: %s", r->err.message);
        reload_free(r);
    } else {
        int waiting = tell_what_waits(&s->config, &r->config);

        take_over(s, r);
        log_info("reload: the configuration was read again%s",
                 waiting ? ", but for what needs a start" : "");
        r->next = s->replaced;
        s->replaced = r;
    }
    if (s->reload_again) {
        s->reload_again = false;
        service_reload(s);
    }
}

void service_reload(struct service *s)
{
    struct reload *r;

    if (s->reload) {
        s->reload_again = true;
        return;
    }
    r = xcalloc(1, sizeof *r);
    r->service = s;
    r->work.data = r;
    r->err.code = ERR_OK;
    config_init(&r->config);
    s->reload = r;
    uv_queue_work(&s->loop, &r->work, read_files, files_were_read);
}

void service_free_replaced(struct service *s, bool all)
{
    if (s->replaced &&
        (all || (api_in_store(s->api) == 0 && survey_watch_idle(s->watch)))) {
        while (s->replaced) {
            struct reload *next = s->replaced->next;

            reload_free(s->replaced);
            s->replaced = next;
        }
    }
}
