/* The service: `reprod serve`, from its start to its end (daemon/service.h). */
#include "daemon/commands.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/base/text.h"
#include "daemon/engine/slurm.h"
#include "daemon/fleet/fleet_foreign.h"
#include "daemon/process/exit_code.h"
#include "daemon/process/leftovers.h"
#include "daemon/process/loop.h"
#include "daemon/process/signals.h"
#include "daemon/process/stream.h"
#include "daemon/service.h"
#include "daemon/survey.h"
#include "db/events.h"
#include "db/webhooks/outbox.h"

enum { TICK_MS = 1000, STOP_TICK_MS = 20, EVENTS_KEPT = 100000, TRIM_EVERY_TICKS = 600 };
enum { LEFTOVERS_TERM_TICKS = 10, LEFTOVERS_KILL_TICKS = 12 };
/* A stop takes some 21 s and three times the grace at most (daemon/stopping.c), if
 * nothing hangs; then a copy that is being made may still have to end. */
enum { END_MS = 90 * 1000 };

/* What the loop drives */

static int64_t run_store(void *arg)
{
    struct service *s = arg;
    uint64_t generation;

    store_dispatch(s->store);
    generation = store_generation(s->store);
    if (generation != s->generation) {
        s->generation = generation;
        api_events_changed(s->api);
        if (s->delivery) {
            delivery_changed(s->delivery, false);
        }
    }
    return -1;
}

/* Nobody can tell which runs are challenges. */
static void seed_scheduler(struct scheduler *scheduler)
{
    uint64_t seed;

    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
        fputs("reprod: getrandom failed\n", stderr);
        abort();
    }
    scheduler_seed(scheduler, seed);
}

static int64_t run_api(void *arg)
{
    struct service *s = arg;

    return api_pump(s->api);
}

/* In a turn of the loop hundreds of agents may have something to say: requests and what
 * was read for them do not wait for all of these, nor for what follows from writes. */
static void breathe(void *arg)
{
    enum { BREATHE_NS = 500000, WRITES_NS = 2000000 };
    struct service *s = arg;
    int64_t now_ns = clock_monotonic_ns();

    if (now_ns - s->breathed_ns < BREATHE_NS) {
        return;
    }
    if (now_ns - s->wrote_ns < WRITES_NS) {
        store_dispatch_reads(s->store);
    } else {
        pump_run(&s->store_pump);
        s->wrote_ns = clock_monotonic_ns();
    }
    pump_run(&s->api_pump);
    s->breathed_ns = clock_monotonic_ns();
}

static void run_stored(void *arg, const struct run_effect *effect)
{
    struct service *s = arg;

    localiser_run_stored(s->localiser, effect->job);
    survey_watch_update(s->watch);
}

static void nothing_to_screen(void *arg)
{
    struct service *s = arg;

    if (s->config.survey && scheduler_open_jobs(s->scheduler) == 0) {
        survey_watch_print(s->watch);
    }
}

void service_screen(struct service *s)
{
    screener_look(s->screener, s->config.survey);
    if (s->stopping.stage == STOPPING_NOT && !s->reads_only) {
        screener_tick(s->screener, clock_wall_ms(), clock_monotonic_ms());
    }
}

static void stop(struct service *s)
{
    if (s->stopping.stage == STOPPING_NOT) {
        loop_must_end(END_MS + 3 * s->config.grace_ms);
        if (s->delivery) {
            delivery_stop(s->delivery);
        }
    }
    survey_watch_stop(s->watch);
    stopping_request(&s->stopping, clock_monotonic_ms());
    uv_timer_set_repeat(&s->tick, STOP_TICK_MS);
    uv_timer_again(&s->tick);
}

/* Only the workers know which workloads there are, so tables are checked when all hosts
 * were heard; a table that names others ends the service, then and never later. */
static bool profiles_fit(struct service *s)
{
    if (s->profiles_checked || !fleet_complete(s->fleet)) {
        return true;
    }
    s->profiles_checked = true;
    if (profile_set_check(s->profiles, fleet_catalogue(s->fleet), &s->refusal) ==
        ERR_OK) {
        return true;
    }
    stop(s);
    return false;
}

/* Likewise for names: the built-in workloads are known only now. */
static bool workloads_fit(struct service *s)
{
    size_t i;
    json_t *workload;

    json_array_foreach(s->config.workloads, i, workload)
    {
        const char *name = json_string_value(json_object_get(workload, "name"));
        const struct catalogue_workload *known =
            catalogue_find(fleet_catalogue(s->fleet), name, NULL);

        if (known && !json_is_true(json_object_get(known->json, "external"))) {
            err_set(&s->refusal, ERR_INVALID,
                    "configuration: /workloads/%zu/name: '%s' is a workload of reprod", i,
                    name);
            stop(s);
            return false;
        }
    }
    return true;
}

static void show_first_stack(struct service *s)
{
    const struct device_stack *devices;
    struct matrix_default standard;
    int count = fleet_devices(s->fleet, &devices);

    matrix_default_find(devices, count, "", &standard);
    survey_watch_default(s->watch, &standard);
}

static void host_said_hello(void *arg)
{
    struct service *s = arg;

    if (!profiles_fit(s) || !workloads_fit(s)) {
        return;
    }
    show_first_stack(s);
    larger_look(s->larger);
    service_screen(s);
    survey_watch_update(s->watch);
}

static enum err_code trim_events(struct tx *tx, void *arg, struct err *err)
{
    (void)arg;
    return outbox_advance(tx, clock_wall_ms(), err) == ERR_OK
               ? events_trim(tx, EVENTS_KEPT, err)
               : err->code;
}

static void close_handles(struct service *s)
{
    stream_readers_breathe(NULL, NULL);
    pump_close(&s->store_pump);
    pump_close(&s->api_pump);
    uv_close((uv_handle_t *)&s->tick, NULL);
    uv_close((uv_handle_t *)&s->look, NULL);
    uv_close((uv_handle_t *)&s->interrupt, NULL);
    uv_close((uv_handle_t *)&s->terminate, NULL);
    uv_close((uv_handle_t *)&s->hangup, NULL);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct service *s = handle->data;

    (void)number;
    stop(s);
}

/* A terminal that is closed ends what was started from it; else, the configuration is to
 * be read again. */
static void on_hangup(uv_signal_t *handle, int number)
{
    struct service *s = handle->data;

    (void)number;
    if (s->on_terminal && !isatty(STDIN_FILENO)) {
        stop(s);
    } else if (s->stopping.stage == STOPPING_NOT) {
        service_reload(s);
    }
}

/* As the commands of this service are ended (daemon/link/link.c): their input has ended
 * long ago. */
static void end_leftovers(int ticks)
{
    if (ticks == LEFTOVERS_TERM_TICKS) {
        leftovers_end(SIGTERM);
    } else if (ticks == LEFTOVERS_KILL_TICKS) {
        leftovers_end(SIGKILL);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct service *s = timer->data;

    service_check(s);
    service_retention(s);
    slurm_tick(s->slurm, clock_monotonic_ms());
    if (s->stopping.stage != STOPPING_NOT) {
        fleet_settle(s->fleet, clock_monotonic_ms());
        if (stopping_advance(&s->stopping, clock_monotonic_ms())) {
            close_handles(s);
        }
        pump_kick(&s->api_pump);
        return;
    }
    fleet_tick(s->fleet, clock_monotonic_ms());
    service_free_replaced(s, false);
    if (s->reads_only) {
        return;
    }
    breathe(s); /* of thousands of devices, each of these takes milliseconds */
    localiser_tick(s->localiser);
    recurring_tick(s->recurring, clock_wall_ms(), clock_monotonic_ms());
    background_tick(s->background, clock_wall_ms(), clock_monotonic_ms());
    breathe(s);
    larger_tick(s->larger);
    breathe(s);
    runner_kick(s->runner);
    survey_watch_update(s->watch);
    breathe(s);
    screener_tick(s->screener, clock_wall_ms(), clock_monotonic_ms());
    changes_tick(s->changes);
    breathe(s);
    service_notice(s);
    breathe(s);
    peers_tick(s->peers, clock_monotonic_ms());
    end_leftovers(++s->ticks);
    if (s->ticks % TRIM_EVERY_TICKS == 0) {
        store_write(s->store, trim_events, NULL, NULL);
    }
}

static void on_look(uv_timer_t *timer)
{
    struct service *s = timer->data;

    if (s->stopping.stage == STOPPING_NOT) {
        service_watch(s);
    }
}

/* Starting, in order of dependency */

static bool device_waits(void *arg, const char *device)
{
    const struct service *s = arg;

    return fleet_foreign_waits(s->fleet, device);
}

/* The usual limit of 1024 files is enough for the agents of 100 hosts.  Only what is
 * needed is asked for: agents inherit it. */
static void allow_files(size_t hosts)
{
    enum { FILES_OF_HOST = 8, FILES_ELSE = 512 };
    rlim_t wanted = FILES_OF_HOST * hosts + FILES_ELSE;
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted) {
        return;
    }
    files.rlim_cur = wanted < files.rlim_max ? wanted : files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur < wanted) {
        log_warning(
            "%zu hosts want %llu open files, and %llu are allowed (ulimit -n): some "
            "hosts may stay away",
            hosts, (unsigned long long)wanted, (unsigned long long)files.rlim_cur);
    }
}

static void open_fleet(struct service *s)
{
    const struct runner_hooks runner_hooks = { .arg = s,
                                               .stored = run_stored,
                                               .waits = device_waits };
    struct fleet_options options = {
        .loop = &s->loop,
        .config = &s->config,
        .store = s->store,
        .scheduler = s->scheduler,
        .idle = s->reads_only,
        .hello = host_said_hello,
        .arg = s,
        .engine = service_engine(s),
    };

    allow_files(json_array_size(s->config.hosts));
    s->runner = runner_new(s->store, s->scheduler, &runner_hooks);
    options.runner = s->runner;
    s->fleet = fleet_new(&options);
    service_open_engine(s);
}

static const struct catalogue *known_catalogue(void *arg)
{
    const struct service *s = arg;

    return fleet_catalogue(s->fleet);
}

static int known_devices(void *arg, const struct device_stack **ret_devices)
{
    const struct service *s = arg;

    return fleet_devices(s->fleet, ret_devices);
}

static bool fleet_is_complete(void *arg)
{
    const struct service *s = arg;

    return fleet_complete(s->fleet);
}

static bool fleet_is_recorded(void *arg)
{
    const struct service *s = arg;

    return fleet_recorded(s->fleet);
}

static void open_screening(struct service *s)
{
    const struct screener_hooks hooks = { .arg = s,
                                          .catalogue = known_catalogue,
                                          .devices = known_devices,
                                          .recorded = fleet_is_recorded,
                                          .complete = fleet_is_complete,
                                          .accepted = service_job_accepted,
                                          .nothing = nothing_to_screen };

    s->screener = screener_new(s->store, &hooks);
}

static bool surveys_are_on(void *arg)
{
    const struct service *s = arg;

    return s->config.survey;
}

static void open_changes(struct service *s)
{
    const struct changes_hooks hooks = { .arg = s,
                                         .catalogue = known_catalogue,
                                         .devices = known_devices,
                                         .surveys = surveys_are_on,
                                         .accepted = service_job_accepted };

    s->changes = changes_new(s->store, &hooks);
}

static void watch_signal(struct service *s, uv_signal_t *handle, uv_signal_cb callback,
                         int number)
{
    loop_must(uv_signal_init(&s->loop, handle), "signals");
    handle->data = s;
    loop_must(uv_signal_start(handle, callback, number), "signals");
}

static void run_loop(struct service *s)
{
    s->stopping = (struct stopping){
        .runner = s->runner,
        .fleet = s->fleet,
        .slurm = s->slurm,
        .peers = s->peers,
        .api = s->api,
        .store = s->store,
        .grace_ms = s->config.grace_ms,
    };
    pump_open(&s->store_pump, &s->loop, store_fd(s->store), run_store, s);
    pump_open(&s->api_pump, &s->loop, api_fd(s->api), run_api, s);
    stream_readers_breathe(breathe, s);
    uv_timer_init(&s->loop, &s->tick);
    s->tick.data = s;
    uv_timer_start(&s->tick, on_tick, TICK_MS, TICK_MS);
    uv_timer_init(&s->loop, &s->look);
    s->look.data = s;
    uv_timer_start(&s->look, on_look, SERVICE_WATCH_MS, SERVICE_WATCH_MS);
    s->vigil.looked_ms = clock_monotonic_ms();
    watch_signal(s, &s->interrupt, on_signal, SIGINT);
    watch_signal(s, &s->terminate, on_signal, SIGTERM);
    watch_signal(s, &s->hangup, on_hangup, SIGHUP);
    printf("listening on http://%s%s%s:%d\n", strchr(s->config.address, ':') ? "[" : "",
           s->config.address, strchr(s->config.address, ':') ? "]" : "",
           api_port(s->api));
    fflush(stdout);
    uv_run(&s->loop, UV_RUN_DEFAULT);
}

static void start_runs(void *arg)
{
    struct service *s = arg;

    runner_kick(s->runner);
}

static int serve(struct service *s, struct err *err)
{
    const struct localiser_hooks localiser_hooks = { .arg = s, .kick = start_runs };
    int code;

    /* A dozen threads answer by turns: an arena for each would keep what one once needed.
     * In a single one, loop and writer wait for each other at every allocation. */
    mallopt(M_ARENA_MAX, 4);
    if (profile_set_load(s->config.profiles, &s->profiles, err) != ERR_OK ||
        verified_set_load(s->config.gpu_reports, &s->verified, err) != ERR_OK) {
        return EXIT_CODE_USAGE;
    }
    code = service_open_store(s, err);
    if (code != EXIT_CODE_OK) {
        return code;
    }
    service_tell_read_only(s);
    if (!s->reads_only) {
        leftovers_open(s->config.data);
    }
    s->scheduler = scheduler_new();
    seed_scheduler(s->scheduler);
    s->localiser = localiser_new(s->store, s->scheduler, &localiser_hooks);
    s->watch = survey_watch_new(s->store, s->scheduler, s->profiles,
                                (int64_t)s->config.stale_after_hours * 3600 * 1000);
    if (service_resume(s, err) != ERR_OK) {
        return exit_code_of_store(err->code);
    }
    code = service_open_api(s, err);
    if (code != EXIT_CODE_OK) {
        return code;
    }
    if (service_open_recurring(s, err) != ERR_OK) {
        return exit_code_of_store(err->code);
    }
    if (peers_new(&s->loop, s->store, s->config.peers, &s->peers, err) != ERR_OK) {
        return exit_code_of_store(err->code);
    }
    open_screening(s);
    open_fleet(s);
    open_changes(s);
    service_open_webhooks(s);
    survey_watch_open(s->watch, s->fleet, s->config.address, api_port(s->api));
    localiser_tick(s->localiser);
    run_loop(s);
    *err = s->refusal;
    return err->code == ERR_OK ? EXIT_CODE_OK : EXIT_CODE_USAGE;
}

static void release(struct service *s)
{
    api_close(s->api);
    store_close(s->store);
    delivery_free(s->delivery);
    notices_free(s->notices);
    changes_free(s->changes);
    screener_free(s->screener);
    free(s->folding); /* between two slices of it */
    service_free_replaced(s, true);
    fleet_free(s->fleet);
    slurm_free(s->slurm);
    free(s->slurm_name);
    peers_free(s->peers);
    runner_free(s->runner);
    survey_watch_free(s->watch);
    localiser_free(s->localiser);
    recurring_free(s->recurring);
    background_free(s->background);
    larger_free(s->larger);
    scheduler_free(s->scheduler);
    profile_set_free(s->profiles);
    verified_set_free(s->verified);
    config_release(&s->config);
}

int serve_main(int argc, char **argv)
{
    struct service s = { .argc = argc, .argv = argv };
    struct err err;
    const char *argument;
    int code = EXIT_CODE_USAGE;

    signals_ignore(); /* SIGHUP until the configuration can be reloaded */
    s.on_terminal = isatty(STDIN_FILENO);
    loop_must(uv_loop_init(&s.loop), "the event loop");
    config_init(&s.config);
    if (options_read(argc, argv, &s.config, &argument, &err) == ERR_OK) {
        if (argument) {
            err_set(&err, ERR_INVALID, "unexpected argument '%s'", argument);
        } else {
            code = serve(&s, &err);
        }
    }
    if (code != EXIT_CODE_OK) {
        text_print(stderr, "reprod: %s", err.message);
    }
    release(&s);
    uv_loop_close(&s.loop);
    return code;
}
