#include "daemon/fleet/fleet.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/json_in.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/config/hosts.h"
#include "daemon/fleet/fleet_catalogues.h"
#include "daemon/fleet/fleet_claims.h"
#include "daemon/fleet/fleet_foreign.h"
#include "daemon/fleet/fleet_life.h"
#include "daemon/fleet/fleet_record.h"
#include "daemon/fleet/fleet_words.h"
#include "daemon/link/link.h"
#include "daemon/link/link_wire.h"
#include "daemon/process/proc.h"

/* What a hello says of the workloads. */

/* Adds the catalogues of HELLO's stacks, without those in SEEN, an array, where they are
 * then. */
static enum err_code add_stacks(struct catalogue *catalogue, json_t *seen,
                                const json_t *hello, struct err *err)
{
    size_t i;
    json_t *stack;

    json_array_foreach(json_object_get(hello, "stacks"), i, stack)
    {
        json_t *workloads = json_object_get(stack, "catalogue");

        if (fleet_catalogues_see(seen, workloads) &&
            catalogue_add(catalogue, workloads, err) != ERR_OK) {
            return err_wrap(err, "stack %s", in_text_or_empty(stack, "name"));
        }
    }
    return ERR_OK;
}

/* Adds what contradicts nothing: a host that is away does not keep others out. */
static void add_leftovers(struct catalogue *catalogue, json_t *seen, const json_t *hello)
{
    size_t i;
    size_t w;
    json_t *stack;
    json_t *workload;

    json_array_foreach(json_object_get(hello, "stacks"), i, stack)
    {
        json_t *workloads = json_object_get(stack, "catalogue");

        if (!fleet_catalogues_see(seen, workloads)) {
            continue;
        }
        json_array_foreach(workloads, w, workload)
        {
            json_t *alone = json_pack("[O]", workload);
            struct err ignored;

            catalogue_add(catalogue, alone, &ignored);
            json_decref(alone);
        }
    }
}

static bool is_beside(const struct fleet_host *host, const struct fleet_host *other)
{
    return other != host && other->online;
}

/* The first host online that HELLO contradicts; NULL: it contradicts itself. */
static const char *find_other(const struct fleet_host *host, const json_t *hello)
{
    const struct fleet *fleet = host->fleet;
    const char *name = NULL;

    for (int i = 0; i < fleet->host_count && !name; i++) {
        const struct fleet_host *other = &fleet->hosts[i];
        struct catalogue *both = catalogue_new();
        json_t *seen = json_array();
        struct err ignored;

        if (is_beside(host, other) &&
            add_stacks(both, seen, other->hello, &ignored) == ERR_OK &&
            add_stacks(both, seen, hello, &ignored) != ERR_OK) {
            name = other->name;
        }
        json_decref(seen);
        catalogue_free(both);
    }
    return name;
}

/* Replaces the fleet's catalogue: HELLO of HOST, the hosts that are online, and of those
 * that are not what contradicts neither.  ERR_CONFLICT, with nothing changed, says whom
 * HELLO contradicts.  What was borrowed from the catalogue is gone. */
static enum err_code take_catalogue(struct fleet_host *host, const json_t *hello,
                                    struct err *err)
{
    struct fleet *fleet = host->fleet;
    struct catalogue *whole = catalogue_new();
    json_t *seen = json_array();
    enum err_code code;
    struct err ignored;

    for (int i = 0; i < fleet->host_count; i++) {
        if (is_beside(host, &fleet->hosts[i])) {
            add_stacks(whole, seen, fleet->hosts[i].hello,
                       &ignored); /* they were taken in */
        }
    }
    code = add_stacks(whole, seen, hello, err);
    for (int i = 0; i < fleet->host_count && code == ERR_OK; i++) {
        if (&fleet->hosts[i] != host && !fleet->hosts[i].online) {
            add_leftovers(whole, seen, fleet->hosts[i].hello);
        }
    }
    json_decref(seen);
    if (code != ERR_OK) {
        const char *other = find_other(host, hello);

        catalogue_free(whole);
        return other ? err_wrap(err, "contradicts host %s", other) : code;
    }
    catalogue_free(fleet->catalogue);
    fleet->catalogue = whole;
    return ERR_OK;
}

/* The life of a host. */

static void log_causes(const struct fleet_host *host, const json_t *hello)
{
    size_t i;
    json_t *stack;

    json_array_foreach(json_object_get(hello, "stacks"), i, stack)
    {
        const char *cause = json_string_value(json_object_get(stack, "cause"));

        if (cause) {
            log_warning("host %s: stack %s: %s", host->name,
                        in_text_or_empty(stack, "name"), cause);
        }
    }
}

static void find_refusal(struct fleet_host *host)
{
    char *refused = host->online ? fleet_claims_refused(host->fleet, host) : NULL;

    if (refused && strcmp(host->refusal, refused) != 0) {
        log_warning("host %s: %s", host->name, refused);
    }
    copy_text(host->refusal, sizeof host->refusal, refused ? refused : "");
    free(refused);
    fleet_look_at(host, clock_monotonic_ms());
}

/* Which devices each host has, now that HOST said which, and why not others.  False: it
 * is as before for all others. */
static bool claim_devices(struct fleet_host *host)
{
    struct fleet *fleet = host->fleet;
    bool others = fleet_claims_take(fleet, host);

    for (int i = 0; i < fleet->host_count && others; i++) {
        if (is_beside(host, &fleet->hosts[i])) {
            fleet_claims_take(fleet, &fleet->hosts[i]);
        }
    }
    for (int i = 0; i < fleet->host_count; i++) {
        if (others || &fleet->hosts[i] == host) {
            find_refusal(&fleet->hosts[i]);
        }
    }
    return others;
}

/* The devices of HOST can be used. */
static void open_devices(struct fleet_host *host)
{
    struct fleet *fleet = host->fleet;

    fleet_record(host);
    for (int i = 0; i < fleet->device_count; i++) {
        if (fleet->devices[i].is_default && fleet->devices[i].host == host->name) {
            runner_device_online(fleet->options.runner, fleet->devices[i].id, host->link,
                                 in_text_or_empty(host->hello, "boot_id"));
        }
    }
}

static void bring_online(struct fleet_host *host)
{
    struct fleet *fleet = host->fleet;
    bool others;

    fleet_life_online(host);
    others = claim_devices(host);
    fleet_list_devices(fleet);
    for (int i = 0; i < fleet->host_count; i++) {
        if (&fleet->hosts[i] == host || (others && fleet->hosts[i].online)) {
            open_devices(&fleet->hosts[i]);
        }
    }
    fleet->options.hello(fleet->options.arg);
}

/* Brings HOST online with HELLO, or keeps it until that is possible. */
static void take_hello(struct fleet_host *host, json_t *hello)
{
    struct err err;

    json_incref(hello);
    json_decref(host->refused);
    host->refused = NULL;
    fleet_catalogues_share(host->fleet, hello);
    if (take_catalogue(host, hello, &err) != ERR_OK) {
        if (strcmp(host->cause, err.message) != 0) {
            log_error("host %s: %s", host->name, err.message);
        }
        copy_text(host->online ? host->refusal : host->cause, sizeof host->cause,
                  err.message);
        host->refused = hello;
        fleet_look_at(host, clock_monotonic_ms());
        return;
    }
    json_decref(host->hello);
    host->hello = hello;
    fleet_host_name_unusable(host);
    bring_online(host);
}

static void on_hello(void *arg, const json_t *hello)
{
    struct fleet_host *host = arg;

    log_causes(host, hello);
    take_hello(host, (json_t *)hello);
}

/* Its last hello, with other STACKS. */
static void on_stacks(void *arg, const json_t *stacks)
{
    struct fleet_host *host = arg;
    json_t *hello = json_copy(host->refused ? host->refused : host->hello);

    json_object_set(hello, "stacks",
                    (json_t *)stacks); /* its agent logged what changed */
    take_hello(host, hello);
    json_decref(hello);
}

/* After a host went away: those that contradicted it are heard again. */
static void hear_again(struct fleet *fleet)
{
    bool left = fleet->left;

    fleet->left = false;
    for (int i = 0; i < fleet->host_count && left && !fleet->closing; i++) {
        if (fleet->hosts[i].refused) {
            take_hello(&fleet->hosts[i], fleet->hosts[i].refused);
        }
    }
}

static void on_started(void *arg, const char *run, int64_t pid, int64_t process_start)
{
    struct fleet_host *host = arg;

    runner_started(host->fleet->options.runner, host->link, run, pid, process_start);
}

static void on_worker_event(void *arg, const char *run, const json_t *event)
{
    struct fleet_host *host = arg;

    runner_event(host->fleet->options.runner, host->link, run, event);
}

static void on_iterations(void *arg, const char *run, const json_t *event)
{
    struct fleet_host *host = arg;

    runner_iterations(host->fleet->options.runner, host->link, run, event);
}

static void on_garbage(void *arg, const char *run, const char *cause)
{
    struct fleet_host *host = arg;

    runner_garbage(host->fleet->options.runner, host->link, run, cause);
}

static void on_exited(void *arg, const char *run, const struct run_exit *exit)
{
    struct fleet_host *host = arg;

    runner_exited(host->fleet->options.runner, host->link, run, exit);
}

static void on_refused(void *arg, const char *run, const char *cause)
{
    struct fleet_host *host = arg;

    runner_refused(host->fleet->options.runner, host->link, run, cause);
}

static void on_processes(void *arg, const json_t *devices)
{
    struct fleet_host *host = arg;

    fleet_foreign_take(host->fleet, host, devices);
}

static void on_silent(void *arg, int64_t since_ms)
{
    struct fleet_host *host = arg;

    host->silent_ms = since_ms;
    if (since_ms) {
        log_warning("host %s: the agent does not answer", host->name);
    } else {
        log_info("host %s: the agent answers again", host->name);
    }
    fleet_look_at(host, clock_monotonic_ms());
}

static void on_noisy(void *arg, int64_t since_ms)
{
    struct fleet_host *host = arg;

    host->noisy_ms = since_ms;
    fleet_look_at(host, clock_monotonic_ms());
}

static void on_ending(void *arg, const char *cause, int64_t notice_ms)
{
    struct fleet_host *host = arg;

    log_info("host %s: the agent was told to end: %s; runs may take %" PRId64 " ms more",
             host->name, cause, notice_ms);
    fleet_look_at(host, clock_monotonic_ms());
}

static void on_closed(void *arg, const char *cause);

static const struct link_events events = {
    .hello = on_hello,
    .stacks = on_stacks,
    .started = on_started,
    .worker_event = on_worker_event,
    .iterations = on_iterations,
    .garbage = on_garbage,
    .exited = on_exited,
    .refused = on_refused,
    .processes = on_processes,
    .silent = on_silent,
    .noisy = on_noisy,
    .ending = on_ending,
    .closed = on_closed,
};

static void on_closed(void *arg, const char *cause)
{
    struct fleet_host *host = arg;

    fleet_life_closed(host, cause);
    hear_again(host->fleet);
}

void fleet_tick(struct fleet *fleet, int64_t now_monotonic_ms)
{
    if (fleet->closing) {
        return;
    }
    fleet_life_tick(fleet, now_monotonic_ms);
    hear_again(fleet);
    for (int i = 0; i < fleet->host_count; i++) {
        struct fleet_host *host = &fleet->hosts[i];

        if (host->online && !host->recorded && host->recording == 0) {
            fleet_record(host);
        }
    }
}

void fleet_settle(struct fleet *fleet, int64_t now_monotonic_ms)
{
    fleet_life_settle_due(fleet, now_monotonic_ms);
}

/* This executable as agent, with the stacks of the configuration. */
static char **local_argv(const struct config *config)
{
    char directory[PROC_PATH_SIZE];
    size_t pairs = json_array_size(config->stacks) + json_array_size(config->workloads);
    char **argv = xcalloc(pairs * 2 + 5, sizeof *argv);
    int n = 0;
    size_t i;
    json_t *stack;
    json_t *workload;

    proc_directory(directory);
    argv[n++] = xasprintf("%s/reprod", directory);
    argv[n++] = xstrdup("agent");
    argv[n++] = xstrdup("--grace-ms");
    argv[n++] = xasprintf("%d", config->grace_ms);
    json_array_foreach(config->stacks, i, stack)
    {
        argv[n++] = xstrdup("--stack-json");
        argv[n++] = json_dumps(stack, JSON_COMPACT);
    }
    json_array_foreach(config->workloads, i, workload)
    {
        argv[n++] = xstrdup("--workload-json");
        argv[n++] = json_dumps(workload, JSON_COMPACT);
    }
    return argv;
}

static char **configured_argv(const json_t *launch)
{
    char **argv = xcalloc(json_array_size(launch) + 1, sizeof *argv);
    size_t i;
    json_t *word;

    json_array_foreach(launch, i, word)
    {
        argv[i] = xstrdup(json_string_value(word));
    }
    return argv;
}

/* The workloads of this configuration reach a launched agent only if it reads it. */
static void warn_of_workloads(const struct config *config, const struct fleet_host *host)
{
    for (char **word = host->argv; *word; word++) {
        if (strstr(*word, "--config") || strstr(*word, "--workload-json")) {
            return;
        }
    }
    if (json_array_size(config->workloads) > 0) {
        log_warning(
            "host %s: the configured workloads are not known there: its launch "
            "command has no --config FILE",
            host->name);
    }
}

/* Its engine makes its command, and says when it may be started. */
static void configure_engine(struct fleet_host *host, const json_t *json,
                             const char *name)
{
    const struct fleet_engine *engine = &host->fleet->options.engine;
    json_t *launch = engine->launch(engine->arg, json);

    host->argv = configured_argv(launch);
    json_decref(launch);
    host->held = true;
    snprintf(host->held_cause, sizeof host->held_cause, "%s: it was not asked yet", name);
}

static void configure(struct fleet_host *host, const json_t *json)
{
    struct host_settings settings;

    hosts_settings(json, &settings);
    host->name = xstrdup(settings.name);
    if (settings.engine) {
        configure_engine(host, json, settings.engine);
    } else {
        host->argv = configured_argv(settings.launch);
    }
    host->needed = settings.needed;
    host->idle_release_ms = settings.idle_release_s * INT64_C(1000);
    host->hello_ms = settings.hello_s == HOSTS_HELLO_USUAL ? 0
                     : settings.hello_s == 0               ? -1
                                             : settings.hello_s * INT64_C(1000);
    host->entry = settings.entry;
    host->at_once = settings.at_once;
}

static void add_hosts(struct fleet *fleet)
{
    const struct config *config = fleet->options.config;
    size_t count = json_array_size(config->hosts);
    char name[CASE_TITLE_SIZE] = "local";
    size_t i;
    json_t *host;

    fleet->hosts = xcalloc(count ? count : 1, sizeof *fleet->hosts);
    fleet->host_count = count ? (int)count : 1;
    if (count == 0) {
        gethostname(name, sizeof name - 1);
        fleet->hosts[0].name = xstrdup(name);
        fleet->hosts[0].argv = local_argv(config);
    }
    json_array_foreach(config->hosts, i, host)
    {
        fleet->hosts[i].fleet = fleet;
        configure(&fleet->hosts[i], host);
        fleet->any_needed = fleet->any_needed || fleet->hosts[i].needed;
        warn_of_workloads(config, &fleet->hosts[i]);
    }
}

struct fleet *fleet_new(const struct fleet_options *options)
{
    struct fleet *fleet = xcalloc(1, sizeof *fleet);

    fleet->options = *options;
    fleet->link_events = events;
    fleet->link_events.hello_deadline_ms =
        link_hello_deadline_ms(options->config->stacks);
    if (!options->idle) {
        add_hosts(fleet);
    }
    fleet->standings = xcalloc((size_t)fleet->host_count + 1, sizeof *fleet->standings);
    for (int i = 0; i < fleet->host_count; i++) {
        struct fleet_host *host = &fleet->hosts[i];

        host->fleet = fleet;
        host->events = fleet->link_events;
        if (host->hello_ms) {
            host->events.hello_deadline_ms = host->hello_ms;
        }
        copy_text(host->cause, sizeof host->cause, "no hello yet");
    }
    fleet_tick(fleet, clock_monotonic_ms());
    return fleet;
}

void fleet_close(struct fleet *fleet, void (*closed)(void *arg), void *arg)
{
    fleet->closing = true;
    fleet->closed = closed;
    fleet->closed_arg = arg;
    if (fleet_life_close(fleet) == 0) {
        closed(arg);
    }
}

void fleet_free(struct fleet *fleet)
{
    if (!fleet) {
        return;
    }
    for (int i = 0; i < fleet->host_count; i++) {
        free_texts(fleet->hosts[i].argv);
        free(fleet->hosts[i].name);
        json_decref(fleet->hosts[i].hello);
        json_decref(fleet->hosts[i].refused);
        json_decref(fleet->hosts[i].node);
    }
    fleet_changed(fleet);
    free(fleet->hosts);
    free(fleet->standings);
    free(fleet->devices);
    fleet_claims_release(fleet);
    json_decref(fleet->catalogues);
    fleet_foreign_release(fleet);
    catalogue_free(fleet->catalogue);
    free(fleet);
}
