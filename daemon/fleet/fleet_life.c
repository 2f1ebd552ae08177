#include "daemon/fleet/fleet_life.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/fleet/fleet_facts.h"
#include "daemon/fleet/fleet_foreign.h"
#include "daemon/link/link.h"
#include "daemon/process/wire.h"

enum { BACKOFF_FIRST_MS = 1000, BACKOFF_MOST_MS = 60000 };

/* From three quarters of MS to five: what many hosts lost at once, a switch or a login
 * node, is not asked by all of them at once. */
static int64_t spread(int64_t ms)
{
    uint32_t drawn = 0;

    return getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) == sizeof drawn
               ? ms * 3 / 4 + (int64_t)(drawn % 1024) * ms / 2048
               : ms;
}

static void back_off(struct fleet_host *host)
{
    host->backoff_ms = host->backoff_ms ? host->backoff_ms * 2 : BACKOFF_FIRST_MS;
    if (host->backoff_ms > BACKOFF_MOST_MS) {
        host->backoff_ms = BACKOFF_MOST_MS;
    }
    host->retry_ms = clock_monotonic_ms() + spread(host->backoff_ms);
}

/* HOST has no agent that can be used any more. */
static void leave(struct fleet_host *host)
{
    struct fleet *fleet = host->fleet;

    host->link = NULL;
    host->online = false;
    host->refusal[0] = host->note[0] = '\0';
    host->silent_ms = host->noisy_ms = 0;
    host->started_ms = host->wanted_ms = 0;
    json_decref(host->refused);
    host->refused = NULL;
    fleet->left = true;
    fleet_foreign_forget(fleet, host);
}

/* What is shown after HOST came or went. */
static void relist(struct fleet_host *host)
{
    fleet_look_at(host, clock_monotonic_ms());
    fleet_list_devices(host->fleet);
}

static void failed(struct fleet_host *host, const char *cause)
{
    if (strcmp(host->cause, cause) != 0) {
        log_warning("host %s: %s", host->name, cause);
    }
    copy_text(host->cause, sizeof host->cause, cause);
    wire_clean(host->cause);
    host->failed = true;
    back_off(host);
    relist(host);
}

/* Its agent ended as it was told to: nothing is wrong. */
static void ended(struct fleet_host *host, const char *cause)
{
    log_info("host %s: %s", host->name, cause);
    copy_text(host->cause, sizeof host->cause, cause);
    back_off(host);
    relist(host);
}

static void link_gone(void *arg)
{
    struct fleet_host *host = arg;
    struct fleet *fleet = host->fleet;

    host->leaving--;
    fleet->open_links--;
    if (fleet->closing && fleet->open_links == 0) {
        fleet->closed(fleet->closed_arg);
    }
}

static void close_link(struct fleet_host *host, struct link *link, const char *cause)
{
    runner_link_closed(host->fleet->options.runner, link, cause);
    host->leaving++;
    link_close(link, link_gone, host);
}

/* Whether an engine will say why the agent of HOST ended. */
static bool asks_engine(struct fleet_host *host, const char *cause, int runs)
{
    const struct fleet_engine *engine = &host->fleet->options.engine;

    return engine->ended && engine->ended(engine->arg, host->name, cause, runs);
}

void fleet_life_settle(struct fleet_host *host, const char *why)
{
    struct link *link = host->lost;
    const char *ending = link_ending(link);
    char text[sizeof host->lost_cause];

    host->lost = NULL;
    copy_text(text, sizeof text, host->lost_cause);
    if (why) {
        snprintf(text, sizeof text, "%.120s: %.130s", why, host->lost_cause);
        wire_clean(text);
    }
    if (ending) {
        char told[sizeof text];

        snprintf(told, sizeof told, "the agent was told to end: %.100s%s%.100s", ending,
                 why ? ": " : "", why ? why : "");
        wire_clean(told);
        ended(host, told);
    } else {
        failed(host, text);
    }
    close_link(host, link, text);
}

void fleet_life_closed(struct fleet_host *host, const char *cause)
{
    struct fleet *fleet = host->fleet;
    int runs = runner_link_busy(fleet->options.runner, host->link);

    host->lost = host->link;
    host->explain_ms = clock_monotonic_ms() + FLEET_EXPLAIN_MS;
    snprintf(host->lost_cause, sizeof host->lost_cause, "the agent went away: %.200s",
             cause);
    wire_clean(host->lost_cause);
    copy_text(host->cause, sizeof host->cause, host->lost_cause);
    host->failed = !link_ending(host->lost);
    leave(host);
    if (!asks_engine(host, cause, runs)) {
        fleet_life_settle(host, NULL);
    } else if (host->lost) { /* it was not explained at once */
        relist(host);
    }
}

static void start(struct fleet_host *host, int64_t now_ms)
{
    struct fleet *fleet = host->fleet;
    const struct fleet_engine *engine = &fleet->options.engine;
    struct err err;

    host->wanted_ms = 0;
    if (link_open(fleet->options.loop, host->name, host->argv, &host->events, host,
                  &host->link, &err) != ERR_OK) {
        host->link = NULL;
        failed(host, err.message);
        asks_engine(host, err.message, 0);
        return;
    }
    fleet->open_links++;
    host->started_ms = now_ms;
    if (engine->started) {
        engine->started(engine->arg, host->name);
    }
}

/* Nothing runs there. */
static void release(struct fleet_host *host)
{
    const struct fleet_engine *engine = &host->fleet->options.engine;
    struct link *link = host->link;

    log_info("host %s: its agent is let go: %s", host->name,
             host->held ? host->held_cause : "there is nothing to do, or others wait");
    leave(host);
    host->cause[0] = '\0';
    host->failed = false;
    host->backoff_ms = host->retry_ms = 0;
    if (engine->released) {
        engine->released(engine->arg, host->name);
    }
    close_link(host, link, "its agent was let go");
    relist(host);
}

void fleet_life_online(struct fleet_host *host)
{
    host->online = true;
    host->failed = false;
    host->backoff_ms = 0;
    host->online_ms = clock_monotonic_ms();
    host->cause[0] = host->note[0] = '\0';
    fleet_look_at(host, host->online_ms);
}

/* The facts. */

struct place {
    const char *device;
    struct fleet_host *host;
};

struct work {
    struct fleet *fleet;
    struct place *places; /* by device */
    int count;
};

static int by_device(const void *a, const void *b)
{
    return strcmp(((const struct place *)a)->device, ((const struct place *)b)->device);
}

static void take_work(void *arg, const char *device)
{
    const struct work *work = arg;
    struct place wanted = { .device = device };
    const struct place *place = bsearch(&wanted, work->places, (size_t)work->count,
                                        sizeof *work->places, by_device);

    if (place) {
        work->fleet->standings[place->host - work->fleet->hosts].work = true;
    }
}

static struct fleet_host *find_host(struct fleet *fleet, const char *name)
{
    struct fleet_host *host = fleet->hosts;

    while (host->name != name) { /* borrowed from it */
        host++;
    }
    return host;
}

/* Which hosts have something to do. */
static void find_work(struct fleet *fleet)
{
    struct work work = { .fleet = fleet };

    if (!fleet->any_needed || scheduler_open_jobs(fleet->options.scheduler) == 0) {
        return;
    }
    work.places = xcalloc((size_t)fleet->device_count + 1, sizeof *work.places);
    for (int i = 0; i < fleet->device_count; i++) {
        const struct device_stack *device = &fleet->devices[i];

        if (device->is_default) {
            work.places[work.count++] =
                (struct place){ device->id, find_host(fleet, device->host) };
        }
    }
    qsort(work.places, (size_t)work.count, sizeof *work.places, by_device);
    scheduler_each_device(fleet->options.scheduler, take_work, &work);
    free(work.places);
}

static enum fleet_stage stage_of(const struct fleet_host *host)
{
    return host->leaving || host->lost ? FLEET_LEAVING
           : host->online              ? FLEET_ONLINE
           : host->link                ? FLEET_STARTING
                                       : FLEET_CLOSED;
}

static void stand(struct fleet_host *host, struct fleet_standing *ret_standing)
{
    const struct runner *runner = host->fleet->options.runner;

    *ret_standing = (struct fleet_standing){
        .needed = host->needed,
        .idle_release_ms = host->idle_release_ms,
        .entry = host->entry,
        .at_once = host->at_once,
        .stage = stage_of(host),
        .held = host->held,
        .held_when_idle = host->held_when_idle,
        .known = host->hello != NULL,
        .failed = host->failed,
        .recorded = host->recorded && host->recording == 0,
        .busy = host->online && (host->needed || host->held) &&
                runner_link_busy(runner, host->link) > 0,
        .retry_ms = host->retry_ms,
        .wanted_ms = host->wanted_ms,
        .started_ms = host->started_ms,
        .online_ms = host->online_ms,
        .used_ms = host->used_ms,
    };
}

static void carry_out(struct fleet_host *host, const struct fleet_standing *standing,
                      int64_t now_ms)
{
    host->has_to_wait = standing->has_to_wait;
    if (standing->stage == FLEET_CLOSED) {
        host->wanted_ms = !standing->wanted ? 0
                          : host->wanted_ms ? host->wanted_ms
                                            : now_ms;
    }
    if (host->link) {
        link_hold(host->link,
                  standing->step == FLEET_DRAIN || standing->step == FLEET_RELEASE);
    }
    if (standing->step == FLEET_START) {
        start(host, now_ms);
    } else if (standing->step == FLEET_RELEASE) {
        release(host);
    }
    fleet_look_at(host, now_ms);
}

void fleet_life_settle_due(struct fleet *fleet, int64_t now_ms)
{
    for (int i = 0; i < fleet->host_count; i++) {
        struct fleet_host *host = &fleet->hosts[i];

        if (host->lost && now_ms >= host->explain_ms) {
            fleet_life_settle(host, NULL);
        }
    }
}

void fleet_life_tick(struct fleet *fleet, int64_t now_ms)
{
    fleet_life_settle_due(fleet, now_ms);
    for (int i = 0; i < fleet->host_count; i++) {
        stand(&fleet->hosts[i], &fleet->standings[i]);
    }
    find_work(fleet);
    for (int i = 0; i < fleet->host_count; i++) {
        const struct fleet_standing *standing = &fleet->standings[i];

        if (standing->work || standing->busy) {
            fleet->hosts[i].used_ms = now_ms;
        }
    }
    fleet_policy(fleet->standings, fleet->host_count, now_ms);
    for (int i = 0; i < fleet->host_count; i++) {
        carry_out(&fleet->hosts[i], &fleet->standings[i], now_ms);
    }
}

int fleet_life_close(struct fleet *fleet)
{
    for (int i = 0; i < fleet->host_count; i++) {
        struct fleet_host *host = &fleet->hosts[i];
        struct link *link = host->link ? host->link : host->lost;

        host->link = host->lost = NULL;
        if (link) {
            close_link(host, link, "the service stopped");
        }
    }
    return fleet->open_links;
}
