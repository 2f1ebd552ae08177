/* What the HTTP interface asks of the service: the functions of
 * struct api_hooks. */
#include "daemon/base/clock.h"
#include "daemon/fleet/fleet_foreign.h"
#include "daemon/fleet/fleet_presence.h"
#include "daemon/process/exit_code.h"
#include "daemon/service.h"

static const struct catalogue *hook_catalogue(void *arg)
{
    const struct service *s = arg;

    return fleet_catalogue(s->fleet);
}

static const struct profile_set *hook_profiles(void *arg)
{
    const struct service *s = arg;

    return s->profiles;
}

static const struct verified_set *hook_verified(void *arg)
{
    const struct service *s = arg;

    return s->verified;
}

static int hook_devices(void *arg, const struct device_stack **ret_devices)
{
    const struct service *s = arg;

    return fleet_devices(s->fleet, ret_devices);
}

void service_job_accepted(void *arg, const struct job *job)
{
    struct service *s = arg;

    scheduler_add(s->scheduler, job);
    if (job->localise_runs) {
        localiser_add(s->localiser, job->id);
        localiser_tick(s->localiser);
    }
    if (job->survey) {
        survey_watch_job(s->watch, job->id);
    }
    runner_kick(s->runner);
}

static void hook_job_cancelled(void *arg, const char *id)
{
    struct service *s = arg;

    scheduler_cancel(s->scheduler, id);
    localiser_cancel(s->localiser, id);
    runner_cancel_job(s->runner, id);
    survey_watch_update(s->watch);
}

static int64_t hook_open_items(void *arg)
{
    const struct service *s = arg;

    return scheduler_open_items(s->scheduler);
}

static int64_t hook_job_eta_ms(void *arg, const char *id)
{
    const struct service *s = arg;
    struct scheduler_progress progress;

    return scheduler_progress(s->scheduler, id, &progress) ? progress.eta_ms : -1;
}

static void hook_schedules_changed(void *arg)
{
    struct service *s = arg;

    recurring_changed(s->recurring);
}

static void hook_webhooks_changed(void *arg)
{
    struct service *s = arg;

    if (s->delivery) {
        delivery_changed(s->delivery, true);
    }
}

static const struct networks *hook_webhook_networks(void *arg)
{
    const struct service *s = arg;

    return &s->config.webhook_networks;
}

static void hook_released(void *arg)
{
    struct service *s = arg;

    runner_kick(s->runner);
}

enum err_code service_open_recurring(struct service *s, struct err *err)
{
    const struct recurring_hooks hooks = { .arg = s,
                                           .catalogue = hook_catalogue,
                                           .devices = hook_devices,
                                           .accepted = service_job_accepted,
                                           .released = hook_released };

    const struct background_hooks background_hooks = { .arg = s,
                                                       .catalogue = hook_catalogue,
                                                       .devices = hook_devices,
                                                       .accepted = service_job_accepted };
    const struct larger_hooks larger_hooks = { .arg = s,
                                               .catalogue = hook_catalogue,
                                               .devices = hook_devices,
                                               .accepted = service_job_accepted };
    const struct background_options none = { .budget_ppm = 0 };

    s->recurring =
        recurring_new(s->store, s->scheduler, &hooks, s->config.open_items_limit);
    s->background = background_new(s->store, s->scheduler, &background_hooks, &none);
    s->larger = larger_new(s->store, &larger_hooks);
    service_configure_background(s);
    return s->reads_only ? ERR_OK
                         : recurring_resume(s->recurring, clock_wall_ms(),
                                            clock_monotonic_ms(), err);
}

void service_configure_background(struct service *s)
{
    const struct config_background *c = &s->config.background;
    const struct background_options options = {
        .every_ms = (int64_t)c->every_seconds * 1000,
        .budget_ppm = (int)(c->budget_percent * 10000),
        .target_ppm = (int)(c->target_percent * 10000),
        .age_ms = (int64_t)c->target_days * 24 * 3600 * 1000,
    };

    background_configure(s->background, &options);
}

static json_t *hook_background(void *arg)
{
    const struct service *s = arg;

    return background_json(s->background);
}

static const struct health *hook_health(void *arg)
{
    struct service *s = arg;

    s->vigil.asked = true;
    return service_health(s);
}

static json_t *hook_stacks(void *arg)
{
    const struct service *s = arg;

    return fleet_stacks(s->fleet);
}

static struct presence *hook_presence(void *arg)
{
    const struct service *s = arg;

    return fleet_presence(s->fleet);
}

static json_t *hook_foreign(void *arg)
{
    const struct service *s = arg;

    return fleet_foreign_json(s->fleet);
}

static json_t *hook_peers(void *arg)
{
    const struct service *s = arg;

    return peers_json(s->peers);
}

static void hook_figures(void *arg, struct api_figures *ret_figures)
{
    const struct service *s = arg;

    ret_figures->hosts = fleet_count_hosts(s->fleet, &ret_figures->hosts_online,
                                           &ret_figures->hosts_waiting);
    ret_figures->stacks = fleet_stack_names(s->fleet);
    ret_figures->backup_ms = s->backup_ms;
    ret_figures->backup_every_ms =
        s->reads_only ? 0 : (int64_t)s->config.backup_every_hours * 3600 * 1000;
    background_figures(s->background, &ret_figures->weakest_bound,
                       &ret_figures->background_spent_ms);
}

static void hook_kick(void *arg)
{
    struct service *s = arg;

    pump_kick(&s->api_pump);
}

int service_open_api(struct service *s, struct err *err)
{
    const struct api_options options = {
        .address = s->config.address,
        .port = s->config.port,
        .stale_after_ms = (int64_t)s->config.stale_after_hours * 3600 * 1000,
        .connection_limit = s->config.connection_limit,
        .open_items_limit = s->config.open_items_limit,
        .version = REPROD_VERSION,
    };
    const struct api_hooks hooks = {
        .arg = s,
        .catalogue = hook_catalogue,
        .profiles = hook_profiles,
        .verified = hook_verified,
        .devices = hook_devices,
        .job_accepted = service_job_accepted,
        .job_cancelled = hook_job_cancelled,
        .job_eta_ms = hook_job_eta_ms,
        .open_items = hook_open_items,
        .schedules_changed = hook_schedules_changed,
        .webhooks_changed = hook_webhooks_changed,
        .webhook_networks = hook_webhook_networks,
        .background = hook_background,
        .health = hook_health,
        .stacks = hook_stacks,
        .presence = hook_presence,
        .foreign = hook_foreign,
        .peers = hook_peers,
        .figures = hook_figures,
        .kick = hook_kick,
    };
    enum err_code code = api_open(&options, &hooks, s->store, &s->api, err);

    switch (code) {
    case ERR_OK:
        return EXIT_CODE_OK;
    case ERR_BUSY:
        return EXIT_CODE_PORT_IN_USE;
    case ERR_INVALID: /* no address of this host, a port that this user may not have */
    case ERR_UNSUPPORTED:
        return EXIT_CODE_USAGE;
    default:
        return EXIT_CODE_OTHER;
    }
}
