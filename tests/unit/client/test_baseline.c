/* Baselines: what one holds of the cells of a service, and what is refused as none. */
#include "daemon/client/baseline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/base/json_in.h"
#include "tests/unit/client/preflight_case.h"

/* The cell of three devices, CHANGED. */
static void expect_entry(const char *changes, bool belongs)
{
    json_t *cell = json_pack("{" CASE_FORMAT
                             ", s:s, s:b, s:i, s:[{s:s, s:s, s:[s, s], s:i, s:i}], "
                             "s:[{s:s, s:s, s:s}]}",
                             CASE, "environment", "e", "is_control", false,
                             "device_count", 3, "camps", "class", "A", "digest", "d",
                             "devices", "G0", "G1", "size", 2, "runs", 9, "items",
                             "state", "agrees", "class", "A", "verdict", "reproducible");
    json_t *change = json_loads(changes, 0, NULL), *entry;

    assert_non_null(cell);
    assert_non_null(change);
    json_object_update(cell, change);
    entry = baseline_entry(cell);
    assert_int_equal(entry != NULL, belongs);
    if (entry) {
        assert_true(baseline_same_case(entry, cell));
        assert_string_equal(in_text_or_empty(entry, "digest"), "d");
        assert_int_equal(baseline_others(entry, "G1", "G1"), 1);
        assert_int_equal(baseline_others(entry, "G9", "G9"), 2);
    }
    json_decref(entry);
    json_decref(change);
    json_decref(cell);
}

/* A baseline whose cases are CASES; MESSAGE is a part of what is wrong with it, or NULL.
 */
static void expect_read(const char *cases, const char *message)
{
    char path[] = "/tmp/reprod-test-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    struct err err;
    json_t *read;

    assert_non_null(file);
    fprintf(file, "{\"schema\":\"reprod.baseline/1\",\"cases\":[%s]}", cases);
    fclose(file);
    read = baseline_read(path, &err);
    assert_int_equal(read == NULL, message != NULL);
    if (message && !strstr(err.message, message)) {
        fail_msg("'%s' is not in '%s'", message, err.message);
    }
    json_decref(read);
    unlink(path);
}

static void test_what_is_no_baseline(void **state)
{
#define ENTRY(workload, more)                                                            \
    "{\"workload\":\"" workload                                                          \
    "\",\"variant\":\"v\",\"size\":\"s\",\"dtype\":\"t\","                               \
    "\"seed\":\"1\",\"environment\":\"e\",\"version\":1," more "}"
    (void)state;
    expect_read("", NULL);
    expect_read(ENTRY("w", "\"digest\":\"d\",\"devices\":1,\"names\":[\"G0\"]"), NULL);
    expect_read("{}", "case 1 lacks the workload");
    expect_read("7", "case 1 lacks the workload");
    expect_read(ENTRY("w", "\"devices\":1,\"names\":[\"G0\"]"), "lacks the digest");
    expect_read(ENTRY("w", "\"digest\":\"d\",\"devices\":1"), "lacks the names");
    expect_read(ENTRY("w", "\"digest\":\"d\",\"devices\":0,\"names\":[]"),
                "lacks the names");
    expect_read(ENTRY("w", "\"digest\":\"d\",\"devices\":2,\"names\":[\"G0\"]"),
                "lacks the names");
    expect_read(ENTRY("w", "\"digest\":\"d\",\"devices\":2,\"names\":[\"G0\",\"G0\"]"),
                "lacks the names");
    expect_read(ENTRY("w", "\"digest\":\"d\",\"devices\":1,\"names\":[7]"),
                "lacks the names");
    expect_read(ENTRY("w", "\"version\":\"1\",\"digest\":\"d\""), "lacks the version");
    expect_read(ENTRY("w", "\"environment\":\"\""), "lacks the environment");
    expect_read(ENTRY("w", "\"digest\":\"d\",\"devices\":1,\"names\":[\"G0\"]") "," ENTRY(
                    "x", "\"digest\":\"d\",\"devices\":1,\"names\":[\"G0\"]"),
                NULL);
    expect_read(ENTRY("w", "\"digest\":\"d\",\"devices\":1,\"names\":[\"G0\"]") "," ENTRY(
                    "w", "\"digest\":\"e\",\"devices\":1,\"names\":[\"G0\"]"),
                "case 2 is case 1 again");
}

static void test_what_a_baseline_holds(void **state)
{
    (void)state;
    expect_entry("{}", true);
    expect_entry("{\"is_control\":true}", false);
    expect_entry(
        "{\"camps\":[{\"class\":\"A\",\"digest\":\"d\",\"size\":2,\"devices\":[\"G0\"]}]"
        "}",
        false);
    expect_entry("{\"device_count\":4}", false);
    expect_entry("{\"camps\":[]}", false);
    expect_entry("{\"items\":[]}", false);
    expect_entry(
        "{\"items\":[{\"state\":\"agrees\",\"class\":\"A\",\"verdict\":"
        "\"inconclusive\"}]}",
        false);
    expect_entry(
        "{\"items\":[{\"state\":\"agrees\",\"class\":\"B\",\"verdict\":"
        "\"reproducible\"}]}",
        false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_baseline_holds),
        cmocka_unit_test(test_what_is_no_baseline),
    };

    return cmocka_run_group_tests_name("baseline", tests, NULL, NULL);
}
