/* No host gets what another one has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/fleet/fleet_claims.h"

static char names[][2] = { "a", "b" };

struct fixture {
    struct fleet fleet;
    struct fleet_host hosts[2];
};

static void init(struct fixture *f)
{
    *f = (struct fixture){ .fleet = { .hosts = f->hosts, .host_count = 2 } };
    for (int i = 0; i < 2; i++) {
        f->hosts[i].name = names[i];
    }
}

/* Its hello: it calls itself NAME and has DEVICES. */
static struct fleet_host *say(struct fixture *f, int host, const char *name,
                              const char *devices)
{
    struct fleet_host *h = &f->hosts[host];
    json_t *list = json_loads(devices, 0, NULL);

    assert_non_null(list);
    json_decref(h->hello);
    h->hello = json_pack("{s:s, s:[{s:s, s:{s:o}}]}", "host", name, "stacks", "name",
                         "cpu", "probe", "devices", list);
    assert_non_null(h->hello);
    h->online = true;
    fleet_claims_take(&f->fleet, h);
    return h;
}

static void expect(const struct fixture *f, const char *device, const char *host,
                   bool a_refused, bool b_refused)
{
    const struct fleet_host *found = fleet_claims_host(&f->fleet, device);
    char *refused[2];

    for (int i = 0; i < 2; i++) {
        refused[i] = fleet_claims_refused(&f->fleet, &f->hosts[i]);
    }
    assert_string_equal(found ? found->name : "", host);
    assert_int_equal(refused[0] != NULL, a_refused);
    assert_int_equal(refused[1] != NULL, b_refused);
    for (int i = 0; i < 2; i++) {
        assert_true(!refused[i] || strstr(refused[i], device));
        free(refused[i]);
    }
}

static void release(struct fixture *f)
{
    json_decref(f->hosts[0].hello);
    json_decref(f->hosts[1].hello);
    fleet_claims_release(&f->fleet);
}

static void test_the_first_one_has_it(void **state)
{
    struct fixture f;

    (void)state;
    init(&f);
    say(&f, 1, "b", "[{\"id\":\"GPU-1\"},{\"id\":\"GPU-2\"}]");
    say(&f, 0, "a", "[{\"id\":\"GPU-0\"},{\"id\":\"GPU-1\"}]");
    expect(&f, "GPU-1", "b", true, false);
    assert_string_equal(fleet_claims_host(&f.fleet, "GPU-0")->name, "a");
    assert_null(fleet_claims_host(&f.fleet, "GPU-3"));
    f.hosts[1].online = false; /* both had it: it is not known whose it is */
    fleet_claims_take(&f.fleet, &f.hosts[0]);
    expect(&f, "GPU-1", "b", true, false);
    say(&f, 1, "b", "[{\"id\":\"GPU-2\"}]");
    fleet_claims_take(&f.fleet, &f.hosts[0]);
    expect(&f, "GPU-1", "a", false, false);
    release(&f);
}

static void test_a_device_that_was_moved(void **state)
{
    struct fixture f;

    (void)state;
    init(&f);
    say(&f, 0, "a", "[{\"id\":\"GPU-1\"}]")->online = false;
    say(&f, 1, "b", "[{\"id\":\"GPU-1\"}]");
    expect(&f, "GPU-1", "b", true, false);
    f.hosts[0].online = true;
    fleet_claims_take(&f.fleet, &f.hosts[0]);
    expect(&f, "GPU-1", "b", true, false);
    release(&f);
}

/* By the name of the other host, who comes later. */
static void test_the_cpu_of_another_host(void **state)
{
    struct fixture f;

    (void)state;
    init(&f);
    say(&f, 1, "n2", "[{\"id\":\"cpu:n1\"}]");
    expect(&f, "cpu:n1", "b", false, false);
    say(&f, 0, "n1", "[{\"id\":\"cpu:n1\"}]");
    expect(&f, "cpu:n1", "a", false, true);
    f.hosts[0].online = false;
    say(&f, 1, "n2", "[{\"id\":\"cpu:n1\"}]");
    expect(&f, "cpu:n1", "a", false, true);
    say(&f, 1, "n1", "[{\"id\":\"cpu:n1\"}]");
    expect(&f, "cpu:n1", "a", false, true);
    release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_one_has_it),
        cmocka_unit_test(test_a_device_that_was_moved),
        cmocka_unit_test(test_the_cpu_of_another_host),
    };

    return cmocka_run_group_tests_name("fleet_claims", tests, NULL, NULL);
}
