/* Hosts whose agents are shell scripts: what an engine has done with them, and when they
 * are let go. */
#include "daemon/fleet/fleet.h"

#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/config/hosts.h"
#include "daemon/fleet/fleet_engine.h"
#include "daemon/fleet/fleet_presence.h"
#include "daemon/fleet/fleet_words.h"
#include "daemon/jobs/scheduler.h"
#include "daemon/run/runner.h"
#include "tests/unit/db/store_fixture.h"

#define HELLO                                                                            \
    "echo '{\\\"event\\\":\\\"hello\\\",\\\"v\\\":1,\\\"host\\\":\\\"h\\\",\\\"pid\\\":" \
    "1,\\\"boot_id\\\":\\\"b\\\",\\\"stacks\\\":[]}';"
#define HOST(name, script, more)                                                         \
    "{\"name\":\"" name "\",\"launch\":[\"sh\",\"-c\",\"" script "\"]" more "}"
#define STAYS HELLO "cat >/dev/null"

struct test {
    struct fixture *store;
    uv_loop_t loop;
    struct config config;
    struct runner *runner;
    struct scheduler *scheduler;
    struct fleet *fleet;
    struct buf told; /* to the engine */
    bool explains;   /* it will */
    bool closed;
};

static void stored(void *arg, const struct run_effect *effect)
{
    (void)arg;
    (void)effect;
}

static void on_hello(void *arg)
{
    (void)arg;
}

static void on_started(void *arg, const char *host)
{
    struct test *t = arg;

    buf_printf(&t->told, "started(%s) ", host);
}

static void on_released(void *arg, const char *host)
{
    struct test *t = arg;

    buf_printf(&t->told, "released(%s) ", host);
}

static bool on_ended(void *arg, const char *host, const char *cause, int runs)
{
    struct test *t = arg;

    buf_printf(&t->told, "ended(%s,%s,%d) ", host, cause, runs);
    return t->explains;
}

static void begin(struct test *t, struct fixture *store, const char *hosts, bool explains)
{
    struct fleet_options options = { .loop = &t->loop,
                                     .config = &t->config,
                                     .store = store->store,
                                     .hello = on_hello,
                                     .arg = t,
                                     .engine = { .arg = t,
                                                 .started = on_started,
                                                 .released = on_released,
                                                 .ended = on_ended } };
    const struct runner_hooks hooks = { .arg = t, .stored = stored };
    json_t *entries = json_loads(hosts, 0, NULL);
    struct err err;

    *t = (struct test){ .store = store, .explains = explains };
    uv_loop_init(&t->loop);
    config_init(&t->config);
    json_decref(t->config.hosts);
    t->config.hosts = hosts_expand(entries, "c", &err);
    assert_non_null(t->config.hosts);
    json_decref(entries);
    options.scheduler = t->scheduler = scheduler_new();
    options.runner = t->runner = runner_new(store->store, t->scheduler, &hooks);
    t->fleet = fleet_new(&options);
}

/* LATER_MS from now. */
static void tick(struct test *t, int64_t later_ms)
{
    uv_run(&t->loop, UV_RUN_NOWAIT);
    store_dispatch(t->store->store);
    if (!t->closed) {
        fleet_tick(t->fleet, clock_monotonic_ms() + later_ms);
    }
    usleep(1000);
}

/* What the API shows is what is so. */
static void check_presence(const struct test *t)
{
    struct presence *p = fleet_presence(t->fleet);

    assert_int_equal(p->host_count, t->fleet->host_count);
    for (int i = 0; i < p->host_count; i++) {
        const struct fleet_host *host = &t->fleet->hosts[i];
        char cause[FLEET_WORDS_SIZE];

        assert_int_equal(p->hosts[i].online, host->online);
        assert_string_equal(p->hosts[i].state, fleet_state_name(host->state));
        assert_string_equal(p->hosts[i].cause ? p->hosts[i].cause : "",
                            fleet_host_cause(host, cause));
    }
    presence_unref(p);
}

/* The state of the first host, or its cause; borrowed until the next call. */
static const char *shown(struct test *t, const char *key)
{
    static char text[512];
    struct presence *p = fleet_presence(t->fleet);
    const char *value = strcmp(key, "state") == 0 ? p->hosts[0].state : p->hosts[0].cause;

    check_presence(t);
    snprintf(text, sizeof text, "%s", value ? value : "");
    presence_unref(p);
    return text;
}

static void wait_for(struct test *t, const char *state, int64_t later_ms)
{
    enum { PATIENCE = 300 * 1000 };

    for (int i = 0; strcmp(shown(t, "state"), state) != 0; i++) {
        if (i == PATIENCE) {
            fail_msg("never %s: %s, %s", state, shown(t, "state"), shown(t, "cause"));
        }
        tick(t, later_ms);
    }
}

static void on_closed(void *arg)
{
    struct test *t = arg;

    t->closed = true;
}

static void end(struct test *t, const char *told)
{
    if (strstr(t->told.data ? t->told.data : "", told) != t->told.data) {
        fail_msg("told %s", t->told.data);
    }
    fleet_close(t->fleet, on_closed, t);
    while (!t->closed) {
        tick(t, 0);
    }
    while (store_pending(t->store->store) > 0) {
        store_dispatch(t->store->store);
    }
    fleet_free(t->fleet);
    runner_free(t->runner);
    scheduler_free(t->scheduler);
    config_release(&t->config);
    buf_release(&t->told);
    while (uv_run(&t->loop, UV_RUN_NOWAIT)) {
        usleep(1000);
    }
    assert_int_equal(uv_loop_close(&t->loop), 0);
}

/* A host that is held is let go, started no more, and nobody is alarmed. */
static void test_hold(void **state)
{
    struct test t;

    begin(&t, *state, "[" HOST("a", STAYS, "") "]", false);
    wait_for(&t, "online", 0);
    assert_true(fleet_is_up(t.fleet, "a"));
    fleet_hold(t.fleet, "a", "slurm: drained", false); /* it may go on */
    tick(&t, 0);
    assert_string_equal(shown(&t, "state"), "online");
    fleet_hold(t.fleet, "a", "slurm: drained: flaky ECC", true);
    assert_string_equal(shown(&t, "state"), "withheld");
    while (fleet_is_up(t.fleet, "a")) {
        tick(&t, 0);
    }
    assert_string_equal(shown(&t, "state"), "withheld");
    assert_string_equal(shown(&t, "cause"), "slurm: drained: flaky ECC");
    assert_null(fleet_missing(t.fleet));
    assert_string_equal(fleet_not_ready(t.fleet),
                        "no device is online: host a: slurm: drained: flaky ECC");
    for (int i = 0; i < 50; i++) {
        tick(&t, 100000);
        assert_false(fleet_is_up(t.fleet, "a"));
    }
    fleet_unhold(t.fleet, "a");
    wait_for(&t, "online", 0);
    fleet_hold(t.fleet, "nobody", "x", true); /* these are of another configuration */
    fleet_unhold(t.fleet, "nobody");
    fleet_note(t.fleet, "nobody", "x");
    fleet_explain(t.fleet, "nobody", "x");
    assert_false(fleet_is_up(t.fleet, "nobody"));
    assert_false(fleet_is_starting(t.fleet, "nobody"));
    end(&t, "started(a) released(a) started(a) ");
}

/* What waits in a queue is no failure; held, it is taken out of it. */
static void test_a_start_that_waits(void **state)
{
    struct test t;

    begin(&t, *state, "[" HOST("a", "cat >/dev/null", ",\"hello_s\":0") "]", false);
    assert_true(fleet_is_starting(t.fleet, "a"));
    assert_string_equal(shown(&t, "state"), "starting");
    tick(&t, LINK_HELLO_MS + 1);
    assert_string_equal(shown(&t, "state"), "waiting");
    assert_non_null(strstr(shown(&t, "cause"), "may stand in a queue"));
    fleet_note(t.fleet, "a", "slurm: job 17 is pending: Resources");
    tick(&t, 0);
    assert_string_equal(shown(&t, "state"), "waiting");
    assert_string_equal(shown(&t, "cause"), "slurm: job 17 is pending: Resources");
    assert_null(fleet_missing(t.fleet));
    fleet_note(t.fleet, "a", NULL);
    assert_string_equal(shown(&t, "state"), "starting");
    fleet_hold(t.fleet, "a", "slurm: reserved", false);
    tick(&t, 0);
    assert_false(fleet_is_starting(t.fleet, "a"));
    fleet_explain(t.fleet, "a", "it was asked to"); /* nobody asked */
    end(&t, "started(a) released(a) ");
}

/* Why an agent ended is known a while later, or never. */
static void test_explanations(void **state)
{
    struct test t;

    begin(&t, *state, "[" HOST("a", HELLO "exit 3", "") "]", true);
    while (!t.told.data || !strstr(t.told.data, "ended")) {
        tick(&t, 0);
    }
    assert_string_equal(shown(&t, "state"), "offline");
    assert_string_equal(shown(&t, "cause"), "the agent went away: exit status 3");
    fleet_explain(t.fleet, "a", "slurm: node failure of a, job 17");
    assert_string_equal(
        shown(&t, "cause"),
        "slurm: node failure of a, job 17: the agent went away: exit status 3");
    while (!strstr(strstr(t.told.data, "ended") + 1, "ended")) {
        tick(&t, 0);
    }
    tick(&t, FLEET_EXPLAIN_MS + 1000);
    assert_string_equal(shown(&t, "cause"), "the agent went away: exit status 3");
    end(&t, "started(a) ended(a,exit status 3,0) started(a) ended(a,exit status 3,0) ");
}

/* The service may end while an explanation is waited for. */
static void test_an_end_before_the_explanation(void **state)
{
    struct test t;

    begin(&t, *state, "[" HOST("a", "exit 1", "") "]", true);
    while (!t.told.data || !strstr(t.told.data, "ended")) {
        tick(&t, 0);
    }
    end(&t, "started(a) ended(a,exit status 1,0) ");
}

/* One that is kept where needed goes when it has nothing to do, and is no alarm. */
static void test_released(void **state)
{
    struct test t;

    begin(&t, *state,
          "[" HOST("a", STAYS, ",\"keep\":\"needed\",\"idle_release_s\":1") "]", false);
    wait_for(&t, "online", 0);
    wait_for(&t, "released", 1000);
    assert_null(fleet_missing(t.fleet));
    for (int i = 0; i < 50; i++) {
        tick(&t, 100000);
        assert_false(fleet_is_up(t.fleet, "a"));
    }
    end(&t, "started(a) released(a) ");
}

/* One that was told to end did not fail. */
static void test_told_to_end(void **state)
{
    struct test t;

    begin(&t, *state,
          "[" HOST("a",
                   HELLO
                   "echo '{\\\"event\\\":\\\"ending\\\",\\\"cause\\\":\\\"SIGTERM\\\","
                   "\\\"notice_ms\\\":5}'; read stop",
                   ",\"keep\":\"needed\"") "]",
          false);
    wait_for(&t, "ending", 0);
    assert_string_equal(shown(&t, "cause"), "its agent was told to end: SIGTERM");
    assert_null(fleet_missing(t.fleet));
    fleet_hold(t.fleet, "a", "slurm: drained", true);
    while (fleet_is_up(t.fleet, "a")) {
        tick(&t, 0);
    }
    end(&t, "started(a) released(a) ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_hold),         STORE_TEST(test_a_start_that_waits),
        STORE_TEST(test_explanations), STORE_TEST(test_an_end_before_the_explanation),
        STORE_TEST(test_released),     STORE_TEST(test_told_to_end),
    };

    return cmocka_run_group_tests_name("fleet_life", tests, NULL, NULL);
}
