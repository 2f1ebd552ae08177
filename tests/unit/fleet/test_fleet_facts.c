/* What makes a fleet another one, and so needs a new survey. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/mem.h"
#include "daemon/fleet/fleet_facts.h"

static const char hello[] =
    "{\"stacks\":[{\"name\":\"cuda\",\"probe\":{\"versions\":{\"driver\":\"580\"},"
    "\"devices\":["
    "{\"id\":\"GPU-1\",\"attributes\":{\"vbios\":\"96\",\"health\":{\"ecc\":0}}}]}}]}";

/* With the first WHAT of hello replaced by WITH. */
static void fingerprint(const char *what, const char *with, char ret[DIGEST_TEXT_SIZE])
{
    char text[512];
    const char *at = strstr(hello, what);
    struct fleet_host host = { .online = true };
    struct fleet fleet = { .hosts = &host, .host_count = 1 };
    json_t *before;

    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - hello), hello, with,
             at + strlen(what));
    host.hello = json_loads(text, 0, NULL);
    assert_non_null(host.hello);
    before = json_deep_copy(host.hello);
    fleet_fingerprint(&fleet, ret);
    assert_true(json_equal(host.hello, before));
    json_decref(host.hello);
    json_decref(before);
}

static void test_error_counters_make_no_other_fleet(void **state)
{
    char first[DIGEST_TEXT_SIZE];
    char other[DIGEST_TEXT_SIZE];

    (void)state;
    fingerprint("580", "580", first);
    fingerprint("\"ecc\":0", "\"ecc\":7", other);
    assert_string_equal(first, other);
    fingerprint(",\"health\":{\"ecc\":0}", "", other);
    assert_string_equal(first, other);
}

static void test_everything_else_does(void **state)
{
    static const char *const facts[] = { "580", "GPU-1", "\"96\"", "\"cuda\"" };
    char first[DIGEST_TEXT_SIZE];
    char other[DIGEST_TEXT_SIZE];

    (void)state;
    fingerprint("580", "580", first);
    for (int i = 0; i < 4; i++) {
        fingerprint(facts[i], i < 2 ? "9" : "\"9\"", other);
        assert_string_not_equal(first, other);
    }
}

#define OTHER_STACK                                                                      \
    "{\"name\":\"external\",\"catalogue\":[{\"workload\":\"own\",\"survey\":%s}],"       \
    "\"probe\":{\"versions\":{\"own\":\"%s\"}}},"

/* An external workload does, and an edit of it, where a survey measures it. */
static void test_what_no_survey_measures_makes_no_other_fleet(void **state)
{
    static const char *const surveyed[] = { "false", "true" };
    char first[DIGEST_TEXT_SIZE], with[DIGEST_TEXT_SIZE], edited[DIGEST_TEXT_SIZE];
    char text[256];

    (void)state;
    fingerprint("580", "580", first);
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "[" OTHER_STACK, surveyed[i], "1");
        fingerprint("[", text, with);
        snprintf(text, sizeof text, "[" OTHER_STACK, surveyed[i], "2");
        fingerprint("[", text, edited);
        assert_int_equal(strcmp(first, with) == 0, i == 0);
        assert_int_equal(strcmp(with, edited) == 0, i == 0);
    }
}

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
        cmocka_unit_test(test_error_counters_make_no_other_fleet),
        cmocka_unit_test(test_everything_else_does),
        cmocka_unit_test(test_who_is_missing),
        cmocka_unit_test(test_stacks_that_are_not_usable),
        cmocka_unit_test(test_what_no_survey_measures_makes_no_other_fleet),
    };

    return cmocka_run_group_tests_name("fleet_facts", tests, NULL, NULL);
}
