/* Which hosts and devices of a fleet can be used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/fleet/fleet_facts.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_missing),
    };

    return cmocka_run_group_tests_name("fleet_facts", tests, NULL, NULL);
}
