/* Which hosts and devices of a fleet can be used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/mem.h"
#include "daemon/fleet/fleet_facts.h"
#include "daemon/fleet/fleet_words.h"

/* A host that does not answer has no device that can be used now. */
static void test_who_is_missing(void **state)
{
    static char a[] = "a";
    static char b[] = "b";
    struct fleet_host hosts[] = { { .name = a, .online = true },
                                  { .name = b, .cause = "no hello yet" } };
    struct device_stack devices[] = { { .id = "x", .host = a, .online = true },
                                      { .id = "y", .host = b } };
    struct fleet fleet = {
        .hosts = hosts, .host_count = 2, .devices = devices, .device_count = 2
    };
    char *missing = fleet_missing(&fleet);

    (void)state;
    assert_string_equal(missing, "1 of 2 hosts: b: no hello yet");
    free(missing);
    assert_null(fleet_not_ready(&fleet));
    hosts[0].silent_ms = 1;
    assert_string_equal(fleet_not_ready(&fleet),
                        "no device is online: host a: the agent has not answered since "
                        "1970-01-01T00:00:00.001Z");
    missing = fleet_missing(&fleet);
    assert_string_equal(missing,
                        "2 of 2 hosts: a: the agent has not answered since "
                        "1970-01-01T00:00:00.001Z; b: no hello yet");
    free(missing);
    hosts[1].online = devices[1].online = true;
    assert_null(fleet_not_ready(&fleet));
    hosts[0].silent_ms = 0;
    assert_null(fleet_missing(&fleet));
}

/* A stack that is not usable is named where others go on, and where none does. */
static void test_stacks_that_are_not_usable(void **state)
{
    static char a[] = "a";
    struct fleet_host host = { .name = a, .online = true };
    struct device_stack device = { .id = "x", .host = a, .online = true };
    struct fleet fleet = {
        .hosts = &host, .host_count = 1, .devices = &device, .device_count = 1
    };
    char *missing;

    (void)state;
    host.hello = json_pack("{s:[{s:s,s:s,s:n},{s:s,s:s,s:s},{s:s,s:n,s:s}]}", "stacks",
                           "name", "good", "worker", "/w", "cause", "name", "bad",
                           "worker", "/v", "cause", "--probe: exit status 3", "name",
                           "external", "worker", "cause", "no stack has a device");
    fleet_host_name_unusable(&host);
    missing = fleet_missing(&fleet);
    assert_string_equal(missing,
                        "1 of 1 hosts: a: stack bad is not usable, and is asked "
                        "again: --probe: exit status 3");
    free(missing);
    assert_null(fleet_not_ready(&fleet));
    device.online = false;
    assert_string_equal(fleet_not_ready(&fleet),
                        "no device is online: host a: stack bad is not usable, and is "
                        "asked again: --probe: exit status 3");
    json_object_set_new(json_array_get(json_object_get(host.hello, "stacks"), 0), "cause",
                        json_string("killed"));
    fleet_host_name_unusable(&host);
    missing = fleet_missing(&fleet);
    assert_string_equal(missing,
                        "1 of 1 hosts: a: 2 stacks are not usable, and are asked "
                        "again: good: killed");
    free(missing);
    copy_text(host.refusal, sizeof host.refusal, "device x is of host b");
    missing = fleet_missing(&fleet);
    assert_string_equal(missing, "1 of 1 hosts: a: device x is of host b");
    free(missing);
    json_decref(host.hello);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_missing),
        cmocka_unit_test(test_stacks_that_are_not_usable),
    };

    return cmocka_run_group_tests_name("fleet_facts", tests, NULL, NULL);
}
