/* When agents are started, and when they are let go. */
#include "daemon/fleet/fleet_policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/base/array.h"

enum { NOW_MS = 100 * 1000 * 1000, IDLE_MS = 60000 };

/* A host that is kept where needed, and has nothing to do. */
static const struct fleet_standing closed = {
    .needed = true, .idle_release_ms = IDLE_MS, .known = true, .recorded = true
};

static struct fleet_standing working(enum fleet_stage stage)
{
    struct fleet_standing h = closed;

    h.stage = stage;
    h.work = true;
    h.started_ms = h.online_ms = h.used_ms = NOW_MS - 1;
    return h;
}

static struct fleet_standing idle(int64_t ms)
{
    struct fleet_standing h = closed;

    h.stage = FLEET_ONLINE;
    h.online_ms = NOW_MS - 2 * ms;
    h.used_ms = NOW_MS - ms;
    return h;
}

static enum fleet_step step_of(struct fleet_standing host)
{
    fleet_policy(&host, 1, NOW_MS);
    return host.step;
}

static void test_nobody(void **state)
{
    (void)state;
    fleet_policy(NULL, 0, NOW_MS);
}

static void test_who_is_started(void **state)
{
    struct fleet_standing h = { .needed = false };

    (void)state;
    assert_int_equal(step_of(h), FLEET_START);
    h.retry_ms = NOW_MS;
    assert_int_equal(step_of(h), FLEET_START);
    h.retry_ms = NOW_MS + 1;
    assert_int_equal(step_of(h), FLEET_STAY);
    h.retry_ms = 0;
    h.held = true;
    assert_int_equal(step_of(h), FLEET_STAY);
    assert_int_equal(step_of(closed), FLEET_STAY);
    h = closed;
    h.known = false;
    assert_int_equal(step_of(h), FLEET_START);
    h = closed;
    h.failed = true;
    assert_int_equal(step_of(h), FLEET_START);
    h = closed;
    h.work = true;
    assert_int_equal(step_of(h), FLEET_START);
    h.stage = FLEET_LEAVING; /* never two agents of one host */
    assert_int_equal(step_of(h), FLEET_STAY);
}

static void test_who_is_let_go(void **state)
{
    struct fleet_standing h = idle(IDLE_MS);

    (void)state;
    assert_int_equal(step_of(h), FLEET_RELEASE);
    assert_int_equal(step_of(idle(IDLE_MS - 1)), FLEET_STAY);
    h.used_ms = 0; /* it just came, and there never was anything */
    h.online_ms = NOW_MS - IDLE_MS + 1;
    assert_int_equal(step_of(h), FLEET_STAY);
    h.online_ms--;
    assert_int_equal(step_of(h), FLEET_RELEASE);
    h.needed = false;
    assert_int_equal(step_of(h), FLEET_STAY);
    h = idle(IDLE_MS);
    h.recorded = false;
    assert_int_equal(step_of(h), FLEET_STAY);
    h = idle(IDLE_MS);
    h.busy = true;
    assert_int_equal(step_of(h), FLEET_STAY);
    h = idle(IDLE_MS);
    h.work = true;
    assert_int_equal(step_of(h), FLEET_STAY);
}

/* What it was to be started for is gone, or done elsewhere. */
static void test_a_start_that_nobody_wants_any_more(void **state)
{
    struct fleet_standing h = working(FLEET_STARTING);

    (void)state;
    assert_int_equal(step_of(h), FLEET_STAY);
    h.work = false;
    assert_int_equal(step_of(h), FLEET_RELEASE);
    h.known = false;
    assert_int_equal(step_of(h), FLEET_STAY);
    h.held = true;
    assert_int_equal(step_of(h), FLEET_RELEASE);
}

static void test_a_host_that_is_held(void **state)
{
    struct fleet_standing h = working(FLEET_ONLINE);

    (void)state;
    h.held = h.busy = true;
    assert_int_equal(step_of(h), FLEET_STAY);
    h.held_when_idle = true;
    assert_int_equal(step_of(h), FLEET_DRAIN);
    h.busy = false;
    assert_int_equal(step_of(h), FLEET_RELEASE);
    h.needed = false;
    assert_int_equal(step_of(h), FLEET_RELEASE);
    h.held = false;
    assert_int_equal(step_of(h), FLEET_STAY);
}

/* Entries do not share their room. */
static void test_so_many_at_once(void **state)
{
    struct fleet_standing hosts[6];

    (void)state;
    for (int i = 0; i < COUNT_OF(hosts); i++) {
        hosts[i] = working(FLEET_CLOSED);
        hosts[i].at_once = i < 4 ? 2 : 0;
        hosts[i].entry = i < 4;
        hosts[i].wanted_ms = 100 - i % 4;
    }
    hosts[3].retry_ms = NOW_MS + 1; /* who waits for its own reasons takes no room */
    fleet_policy(hosts, COUNT_OF(hosts), NOW_MS);
    assert_int_equal(hosts[0].step, FLEET_STAY);
    assert_true(hosts[0].has_to_wait);
    assert_int_equal(hosts[1].step, FLEET_START);
    assert_int_equal(hosts[2].step, FLEET_START);
    assert_int_equal(hosts[3].step, FLEET_STAY);
    assert_false(hosts[3].has_to_wait);
    assert_int_equal(hosts[4].step, FLEET_START);
    assert_int_equal(hosts[5].step, FLEET_START);
    hosts[1].stage = FLEET_STARTING;
    hosts[2].stage = FLEET_LEAVING;
    fleet_policy(hosts, COUNT_OF(hosts), NOW_MS);
    assert_int_equal(hosts[0].step, FLEET_STAY);
    assert_int_equal(hosts[1].step, FLEET_STAY);
    hosts[2].stage = FLEET_CLOSED;
    hosts[2].wanted_ms = 0; /* those that are wanted first come by their order */
    hosts[0].wanted_ms = 0;
    fleet_policy(hosts, COUNT_OF(hosts), NOW_MS);
    assert_int_equal(hosts[0].step, FLEET_START);
    assert_true(hosts[2].has_to_wait);
}

/* The one without work for longest goes first, and no more than there are who wait. */
static void test_idle_hosts_make_room(void **state)
{
    struct fleet_standing hosts[5] = { idle(FLEET_PAUSE_MS), idle(FLEET_PAUSE_MS + 1),
                                       idle(FLEET_PAUSE_MS - 1), working(FLEET_ONLINE),
                                       working(FLEET_CLOSED) };

    (void)state;
    for (int i = 0; i < COUNT_OF(hosts); i++) {
        hosts[i].at_once = 4;
    }
    fleet_policy(hosts, COUNT_OF(hosts), NOW_MS);
    assert_true(hosts[4].has_to_wait);
    assert_int_equal(hosts[0].step, FLEET_STAY);
    assert_int_equal(hosts[1].step, FLEET_RELEASE);
    hosts[1].stage = FLEET_LEAVING; /* its room comes */
    fleet_policy(hosts, COUNT_OF(hosts), NOW_MS);
    assert_int_equal(hosts[0].step, FLEET_STAY);
    hosts[1] = idle(1);
    hosts[0] = idle(2);
    hosts[1].at_once = hosts[0].at_once = 4;
    fleet_policy(hosts, COUNT_OF(hosts), NOW_MS);
    for (int i = 0; i < COUNT_OF(hosts); i++) {
        assert_int_equal(hosts[i].step, FLEET_STAY);
    }
    hosts[0] = idle(IDLE_MS); /* it goes by itself */
    hosts[1] = idle(IDLE_MS - 1);
    hosts[1].at_once = hosts[0].at_once = 4;
    fleet_policy(hosts, COUNT_OF(hosts), NOW_MS);
    assert_int_equal(hosts[0].step, FLEET_RELEASE);
    assert_int_equal(hosts[1].step, FLEET_STAY);
}

static void test_turns(void **state)
{
    struct fleet_standing hosts[3] = { working(FLEET_ONLINE), working(FLEET_STARTING),
                                       working(FLEET_CLOSED) };

    (void)state;
    for (int i = 0; i < COUNT_OF(hosts); i++) {
        hosts[i].at_once = 2;
    }
    hosts[0].busy = true;
    hosts[0].online_ms = NOW_MS - FLEET_TURN_MS;
    fleet_policy(hosts, COUNT_OF(hosts), NOW_MS);
    assert_int_equal(hosts[0].step, FLEET_DRAIN);
    assert_int_equal(hosts[1].step, FLEET_STAY);
    hosts[0].busy = false;
    fleet_policy(hosts, COUNT_OF(hosts), NOW_MS);
    assert_int_equal(hosts[0].step, FLEET_RELEASE);
    hosts[0].online_ms++;
    fleet_policy(hosts, COUNT_OF(hosts), NOW_MS);
    assert_int_equal(hosts[0].step, FLEET_STAY);
    hosts[1].started_ms = NOW_MS - FLEET_TURN_MS; /* one that does not come up */
    fleet_policy(hosts, COUNT_OF(hosts), NOW_MS);
    assert_int_equal(hosts[0].step, FLEET_STAY);
    assert_int_equal(hosts[1].step, FLEET_RELEASE);
    hosts[0].online_ms = NOW_MS - FLEET_TURN_MS - 1; /* the longer turn ends first */
    fleet_policy(hosts, COUNT_OF(hosts), NOW_MS);
    assert_int_equal(hosts[0].step, FLEET_RELEASE);
    assert_int_equal(hosts[1].step, FLEET_STAY);
    hosts[2].work = false; /* nobody waits */
    fleet_policy(hosts, COUNT_OF(hosts), NOW_MS);
    assert_int_equal(hosts[0].step, FLEET_STAY);
    hosts[2].work = true;
    hosts[0].held = hosts[0].held_when_idle = hosts[0].busy = true; /* its room comes */
    fleet_policy(hosts, COUNT_OF(hosts), NOW_MS);
    assert_int_equal(hosts[0].step, FLEET_DRAIN);
    assert_int_equal(hosts[1].step, FLEET_STAY);
}

/* Those that are always kept have no turns: all of their entry fit. */
static void test_who_is_kept_always_stays(void **state)
{
    struct fleet_standing hosts[2] = { idle(IDLE_MS), working(FLEET_CLOSED) };

    (void)state;
    hosts[0].needed = false;
    hosts[0].at_once = hosts[1].at_once = 1;
    hosts[0].online_ms = hosts[0].used_ms = 0;
    fleet_policy(hosts, COUNT_OF(hosts), NOW_MS);
    assert_int_equal(hosts[0].step, FLEET_STAY);
    assert_true(hosts[1].has_to_wait);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_who_is_started),
        cmocka_unit_test(test_who_is_let_go),
        cmocka_unit_test(test_a_start_that_nobody_wants_any_more),
        cmocka_unit_test(test_a_host_that_is_held),
        cmocka_unit_test(test_so_many_at_once),
        cmocka_unit_test(test_idle_hosts_make_room),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_who_is_kept_always_stays),
    };

    return cmocka_run_group_tests_name("fleet_policy", tests, NULL, NULL);
}
