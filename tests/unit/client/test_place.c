/* The job that looks for the place where a case diverges: the case alone, under the
 * circumstances of the job that saw it diverge. */
#include "daemon/client/place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static const char ITEM[] =
    "{\"seq\":4,\"workload\":\"w\",\"version\":2,\"variant\":\"v\",\"size\":\"large\","
    "\"dtype\":\"float16\",\"seed\":\"18446744073709551615\",\"device\":\"cpu:a\","
    "\"stack\":\"cpu\",\"state\":\"done\"}";
#define CASE                                                                             \
    "\"workloads\":[\"w\"],\"variants\":[\"v\"],\"sizes\":[\"large\"],\"dtypes\":["      \
    "\"float16\"],\"seeds\":[\"18446744073709551615\"],\"devices\":[\"cpu:a\"],"         \
    "\"stacks\":[\"cpu\"],\"localise\":true"

static void check_request(const char *request, int runs_max, const char *expected)
{
    json_t *asked = request ? json_loads(request, 0, NULL) : NULL;
    json_t *item = json_loads(ITEM, 0, NULL), *wanted = json_loads(expected, 0, NULL);
    char *text = place_request(asked, item, runs_max);
    json_t *body = json_loads(text, 0, NULL);

    assert_true(wanted != NULL && json_equal(body, wanted));
    json_decref(asked);
    json_decref(item);
    json_decref(wanted);
    json_decref(body);
    free(text);
}

static void test_the_case_alone(void **state)
{
    (void)state;
    check_request(
        "{\"workloads\":[\"w\",\"x\"],\"seed\":\"7\",\"stacks\":\"all\","
        "\"survey\":false,\"stop_when_varies\":true,\"iterations\":9,"
        "\"runs\":3,\"probes\":true,\"note\":\"n\"}",
        40, "{" CASE ",\"runs\":5,\"runs_max\":40}");
    check_request(NULL, 3, "{" CASE ",\"runs\":3,\"runs_max\":3}");
}

static void test_its_circumstances(void **state)
{
    (void)state;
    check_request(
        "{\"workloads\":[\"w\"],\"contention\":2,\"memory_poison\":true,"
        "\"allocation_jitter\":\"5\",\"shared_import\":true,"
        "\"timeout_seconds\":9,\"priority\":\"scheduled\"}",
        40,
        "{" CASE
        ",\"runs\":5,\"runs_max\":40,\"contention\":2,"
        "\"memory_poison\":true,\"allocation_jitter\":\"5\","
        "\"shared_import\":true,\"timeout_seconds\":9,\"priority\":"
        "\"scheduled\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_case_alone),
        cmocka_unit_test(test_its_circumstances),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
