/* What is shown of a fleet is made once, and anew after each change of it. */
#include "daemon/fleet/fleet_presence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/mem.h"
#include "daemon/fleet/fleet_claims.h"
#include "daemon/fleet/fleet_engine.h"
#include "daemon/fleet/fleet_facts.h"
#include "daemon/fleet/fleet_foreign.h"

static char names[][2] = { "a", "b" };

/* Stands for a link whose agent said nothing but hello. */
static _Alignas(max_align_t) char quiet_link[1 << 18];

struct fixture {
    struct fleet fleet;
    struct fleet_host hosts[2];
    struct config config;
    const char *node;        /* what the engine says of each host */
    struct presence *before; /* what was shown last */
};

static json_t *node(void *arg, const char *host)
{
    const struct fixture *f = arg;

    return json_pack("[s,s]", host, f->node);
}

/* Whether another one is shown than when this was last asked. */
static bool is_new(struct fixture *f)
{
    struct presence *now = fleet_presence(&f->fleet);
    bool other = now != f->before;

    presence_unref(f->before);
    f->before = now;
    return other;
}

static const struct presence_host *host(const struct fixture *f, const char *name)
{
    return presence_host(f->before, name);
}

/* A hello of HOST, with STACKS. */
static void say(struct fixture *f, int i, const char *stacks)
{
    struct fleet_host *h = &f->hosts[i];
    json_t *list = json_loads(stacks, 0, NULL);

    assert_non_null(list);
    json_decref(h->hello);
    h->hello = json_pack("{s:s, s:o}", "host", h->name, "stacks", list);
    h->online = true;
    h->link = (struct link *)quiet_link;
    fleet_look_at(h, 0);
    fleet_claims_take(&f->fleet, h);
    fleet_list_devices(&f->fleet);
}

static void tell(struct fixture *f, int i, const char *devices)
{
    json_t *list = json_loads(devices, 0, NULL);

    assert_non_null(list);
    fleet_foreign_take(&f->fleet, &f->hosts[i], list);
    json_decref(list);
}

static void begin(struct fixture *f)
{
    *f = (struct fixture){ .fleet = { .hosts = f->hosts,
                                      .host_count = 2,
                                      .options = { .config = &f->config,
                                                   .engine = { f, .node = node } } },
                           .config = { .foreign_waits = true },
                           .node = "idle" };
    for (int i = 0; i < 2; i++) {
        f->hosts[i].name = names[i];
        f->hosts[i].fleet = &f->fleet;
        copy_text(f->hosts[i].cause, sizeof f->hosts[i].cause, "no hello yet");
        fleet_look_at(&f->hosts[i], 0);
    }
    say(f, 1,
        "[{\"name\":\"s1\",\"probe\":{\"devices\":[{\"id\":\"X\"},{\"id\":\"Y\"}]}},"
        "{\"name\":\"s2\",\"probe\":{\"devices\":[{\"id\":\"Y\"}]}}]");
    assert_true(is_new(f));
}

static void end(struct fixture *f)
{
    presence_unref(f->before);
    fleet_changed(&f->fleet);
    for (int i = 0; i < 2; i++) {
        json_decref(f->hosts[i].hello);
        json_decref(f->hosts[i].node);
    }
    free(f->fleet.devices);
    fleet_claims_release(&f->fleet);
    fleet_foreign_release(&f->fleet);
}

static void test_what_is_shown(void **state)
{
    struct fixture f;
    const struct presence_device *y;

    (void)state;
    begin(&f);
    assert_false(is_new(&f));
    assert_string_equal(host(&f, "a")->state, "offline");
    assert_string_equal(host(&f, "a")->cause, "no hello yet");
    assert_false(host(&f, "a")->online);
    assert_true(host(&f, "a")->since_ms > 0);
    assert_string_equal(host(&f, "b")->state, "online");
    assert_null(host(&f, "b")->cause);
    assert_int_equal(host(&f, "b")->there, 2);
    assert_null(host(&f, "c"));
    y = presence_first(f.before, "Y");
    assert_string_equal(y->stack, "s1");
    assert_true(y->is_default && y->online && y->there && y->host == host(&f, "b"));
    assert_ptr_equal(presence_default(f.before, "Y"), y);
    assert_string_equal(y->next->stack, "s2");
    assert_false(y->next->is_default);
    assert_null(y->next->next);
    assert_null(y->cause);
    assert_null(presence_first(f.before, "Z"));
    assert_null(presence_default(f.before, "Z"));
    assert_null(presence_foreign(f.before, "Y"));
    end(&f);
}

/* Looks at HOST; whether something else is shown, namely CAUSE. */
static void expect_cause(struct fixture *f, int i, const char *cause)
{
    fleet_look_at(&f->hosts[i], 0);
    assert_true(is_new(f));
    assert_string_equal(host(f, names[i])->cause ? host(f, names[i])->cause : "", cause);
    fleet_look_at(&f->hosts[i], 0);
    assert_false(is_new(f));
}

static void test_hosts_that_change(void **state)
{
    struct fixture f;
    struct fleet_host *b = &f.hosts[1];

    (void)state;
    begin(&f);
    b->silent_ms = 1;
    expect_cause(&f, 1, "the agent has not answered since 1970-01-01T00:00:00.001Z");
    b->silent_ms = 2;
    expect_cause(&f, 1, "the agent has not answered since 1970-01-01T00:00:00.002Z");
    b->silent_ms = 0;
    expect_cause(&f, 1, "");
    b->noisy_ms = 3;
    expect_cause(
        &f, 1,
        "more on its standard error than is logged, since 1970-01-01T00:00:00.003Z");
    b->noisy_ms = 0;
    expect_cause(&f, 1, "");
    copy_text(b->refusal, sizeof b->refusal, "device X is of host a");
    expect_cause(&f, 1, "device X is of host a");
    b->refusal[0] = '\0';
    copy_text(b->unusable, sizeof b->unusable, "stack s is not usable");
    expect_cause(&f, 1, "stack s is not usable");
    fleet_hold(&f.fleet, "a", "slurm: down", false);
    assert_true(is_new(&f));
    assert_string_equal(host(&f, "a")->state, "withheld");
    assert_string_equal(host(&f, "a")->cause, "slurm: down");
    fleet_hold(&f.fleet, "a", "slurm: drained", false);
    assert_true(is_new(&f));
    assert_string_equal(host(&f, "a")->cause, "slurm: drained");
    fleet_unhold(&f.fleet, "a");
    assert_true(is_new(&f));
    assert_string_equal(host(&f, "a")->state, "offline");
    end(&f);
}

/* What an agent took with it was shown before, and who has that may go on reading it. */
static void test_devices_that_change(void **state)
{
    struct fixture f;
    struct presence *kept;

    (void)state;
    begin(&f);
    kept = fleet_presence(&f.fleet);
    say(&f, 1, "[{\"name\":\"s3\",\"probe\":{\"devices\":[{\"id\":\"Z\"}]}}]");
    assert_true(is_new(&f));
    assert_null(presence_first(f.before, "X"));
    assert_string_equal(presence_first(f.before, "Z")->stack, "s3");
    f.hosts[1].online = false;
    f.hosts[1].link = NULL;
    copy_text(f.hosts[1].cause, sizeof f.hosts[1].cause, "exit status 3");
    fleet_look_at(&f.hosts[1], 0);
    fleet_list_devices(&f.fleet);
    assert_true(is_new(&f));
    assert_false(host(&f, "b")->online);
    assert_false(presence_first(f.before, "Z")->online);
    assert_false(presence_first(f.before, "Z")->there);
    assert_int_equal(host(&f, "b")->there, 0);
    assert_string_equal(presence_first(f.before, "Z")->cause, "exit status 3");
    assert_string_equal(presence_first(f.before, "Z")->host->state, "offline");
    assert_string_equal(presence_first(kept, "X")->stack, "s1");
    assert_true(presence_host(kept, "b")->online);
    presence_unref(kept);
    end(&f);
}

static void test_others_on_devices(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    tell(&f, 1, "[{\"id\":\"X\",\"foreign\":null}]");
    assert_true(is_new(&f));
    assert_null(presence_foreign(f.before, "X")->processes);
    tell(&f, 1, "[{\"id\":\"X\",\"foreign\":null}]");
    assert_false(is_new(&f));
    tell(&f, 1, "[{\"id\":\"X\",\"foreign\":null,\"cause\":\"no driver\"}]");
    assert_true(is_new(&f));
    assert_string_equal(presence_foreign(f.before, "X")->cause, "no driver");
    tell(&f, 1, "[{\"id\":\"X\",\"foreign\":[\"1 p\"]}]");
    assert_true(is_new(&f));
    assert_int_equal(json_array_size(presence_foreign(f.before, "X")->processes), 1);
    assert_null(presence_foreign(f.before, "X")->cause);
    assert_true(presence_foreign(f.before, "X")->waits);
    tell(&f, 1, "[{\"id\":\"X\",\"foreign\":[\"1 p\"]},{\"id\":\"?\",\"foreign\":[]}]");
    assert_false(is_new(&f));
    tell(&f, 1, "[{\"id\":\"X\",\"foreign\":[\"1 p\",\"2 q\"]}]");
    assert_true(is_new(&f));
    assert_int_equal(json_array_size(presence_foreign(f.before, "X")->processes), 2);
    f.config.foreign_waits = false; /* it was read again */
    assert_true(is_new(&f));
    assert_false(presence_foreign(f.before, "X")->waits);
    fleet_foreign_forget(&f.fleet, &f.hosts[0]);
    assert_false(is_new(&f));
    fleet_foreign_forget(&f.fleet, &f.hosts[1]);
    assert_true(is_new(&f));
    assert_null(presence_foreign(f.before, "X"));
    end(&f);
}

static void test_what_an_engine_hears(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    assert_string_equal(json_string_value(json_array_get(host(&f, "a")->node, 0)), "a");
    assert_string_equal(json_string_value(json_array_get(host(&f, "a")->node, 1)),
                        "idle");
    f.node = "down";
    fleet_heard(&f.fleet);
    assert_true(is_new(&f));
    assert_string_equal(json_string_value(json_array_get(host(&f, "a")->node, 1)),
                        "down");
    fleet_heard(NULL);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_shown),
        cmocka_unit_test(test_hosts_that_change),
        cmocka_unit_test(test_devices_that_change),
        cmocka_unit_test(test_others_on_devices),
        cmocka_unit_test(test_what_an_engine_hears),
    };

    return cmocka_run_group_tests_name("fleet_presence", tests, NULL, NULL);
}
