/* What reports of `make gpu-check` verify, and what they do not. */
#include "daemon/evidence/verified.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A report of DATE that found OUTCOME of w/ordered, version VERSION. */
static enum err_code add(struct verified_set *set, const char *date, int version,
                         const char *outcome, struct err *err)
{
    char text[1024];

    snprintf(text, sizeof text,
             "{\"v\":1,\"rehearsal\":false,\"date\":\"%s\",\"gpu\":\"NVIDIA H200\","
             "\"driver\":\"580.1\",\"worker_build\":\"abc\",\"variants\":["
             "{\"workload\":\"w\",\"version\":%d,\"variant\":\"ordered\","
             "\"outcome\":\"%s\"}]}",
             date, version, outcome);
    return verified_set_add(set, "r.json", text, strlen(text), err);
}

static void test_newest_report_counts(void **state)
{
    struct verified_set *set = verified_set_new();
    struct verified v;
    struct err err;

    (void)state;
    assert_false(verified_find(set, "w", "ordered", &v));
    assert_int_equal(add(set, "2026-02-01T00:00:00.000Z", 1, "failed", &err), ERR_OK);
    assert_int_equal(add(set, "2026-01-01T00:00:00.000Z", 1, "passed", &err), ERR_OK);
    assert_true(verified_find(set, "w", "ordered", &v));
    assert_string_equal(v.outcome, "failed");
    assert_string_equal(v.date, "2026-02-01T00:00:00.000Z");
    assert_string_equal(v.gpu, "NVIDIA H200");
    assert_string_equal(v.driver, "580.1");
    assert_string_equal(v.worker_build, "abc");
    assert_int_equal(add(set, "2026-02-01T00:00:00.000Z", 2, "passed", &err), ERR_OK);
    assert_true(verified_find(set, "w", "ordered", &v));
    assert_int_equal(v.version, 1); /* the first of one time */
    assert_int_equal(add(set, "2026-02-01T00:00:00.001Z", 3, "passed", &err), ERR_OK);
    assert_true(verified_find(set, "w", "ordered", &v));
    assert_int_equal(v.version, 3);
    assert_false(verified_find(set, "w", "unordered", &v));
    assert_false(verified_find(set, "x", "ordered", &v));
    verified_set_free(set);
}

/* What is built in: kernels that have another shape since a moment, all of a workload's
 * or those of a variant. */
static void test_kernels_of_another_shape(void **state)
{
    static const struct {
        const char *workload, *variant, *date, *outcome;
    } cases[] = {
        { "cumsum", "ordered", "2026-11-26T10:13:22.999Z", "outdated" },
        { "cumsum", "ordered", "2026-11-26T10:13:23.000Z", "passed" },
        { "gather_bwd", "one_hot", "2026-11-26T01:20:00.000Z", "outdated" },
        { "gather_bwd", "sorted", "2026-11-26T01:20:00.000Z", "passed" },
        { "bias_add_bwd", "ordered", "2026-11-26T01:20:00.000Z", "passed" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct verified_set *set = verified_set_new();
        struct verified v;
        struct err err;
        char text[1024];

        snprintf(text, sizeof text,
                 "{\"v\":1,\"rehearsal\":false,\"date\":\"%s\",\"gpu\":\"G\","
                 "\"driver\":\"D\",\"worker_build\":\"B\",\"variants\":["
                 "{\"workload\":\"%s\",\"version\":1,\"variant\":\"%s\","
                 "\"outcome\":\"passed\"}]}",
                 cases[i].date, cases[i].workload, cases[i].variant);
        assert_int_equal(verified_set_add(set, "r.json", text, strlen(text), &err),
                         ERR_OK);
        assert_true(verified_find(set, cases[i].workload, cases[i].variant, &v));
        assert_string_equal(verified_outcome(&v, 1), cases[i].outcome);
        assert_string_equal(verified_outcome(&v, 2), "outdated");
        verified_set_free(set);
    }
}

/* Reports of the configuration join the built-in ones. */
static void test_reports_from_files(void **state)
{
    char path[] = "/tmp/reprod-verified-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    json_t *files = json_pack("[s]", path);
    struct verified_set *set = NULL;
    struct verified v;
    struct err err;

    (void)state;
    assert_non_null(file);
    fprintf(file,
            "{\"v\":1,\"rehearsal\":false,\"date\":\"2026-02-01T00:00:00.000Z\","
            "\"gpu\":\"G\",\"driver\":\"D\",\"worker_build\":\"B\",\"variants\":["
            "{\"workload\":\"w\",\"version\":1,\"variant\":\"ordered\","
            "\"outcome\":\"passed\"}]}");
    fclose(file);
    assert_int_equal(verified_set_load(files, &set, &err), ERR_OK);
    assert_true(verified_find(set, "w", "ordered", &v));
    assert_string_equal(v.gpu, "G");
    verified_set_free(set);
    verified_set_free(NULL);
    unlink(path);
    assert_int_not_equal(verified_set_load(files, &set, &err), ERR_OK);
    assert_non_null(strstr(err.message, path));
    json_decref(files);
}

static void test_only_the_version_that_ran(void **state)
{
    struct verified_set *set = verified_set_new();
    struct verified v;
    struct err err;

    (void)state;
    assert_int_equal(add(set, "2026-02-01T00:00:00.000Z", 1, "passed", &err), ERR_OK);
    assert_true(verified_find(set, "w", "ordered", &v));
    assert_string_equal(verified_outcome(&v, 1), "passed");
    assert_string_equal(verified_outcome(&v, 2), "outdated");
    verified_set_free(set);
}

static void test_what_was_not_run_verifies_nothing(void **state)
{
    struct verified_set *set = verified_set_new();
    struct verified v;
    struct err err;

    (void)state;
    assert_int_equal(add(set, "2026-02-01T00:00:00.000Z", 1, "not_run", &err), ERR_OK);
    assert_int_equal(add(set, "2026-02-02T00:00:00.000Z", 1, "unsupported", &err),
                     ERR_OK);
    assert_false(verified_find(set, "w", "ordered", &v));
    assert_int_equal(add(set, "2026-01-01T00:00:00.000Z", 1, "inconclusive", &err),
                     ERR_OK);
    assert_true(verified_find(set, "w", "ordered", &v));
    assert_string_equal(v.outcome, "inconclusive");
    verified_set_free(set);
}

static enum err_code add_text(const char *text, struct err *err)
{
    struct verified_set *set = verified_set_new();
    enum err_code code = verified_set_add(set, "r.json", text, strlen(text), err);

    verified_set_free(set);
    return code;
}

static void test_refusals(void **state)
{
    struct verified_set *set = verified_set_new();
    struct err err;

    (void)state;
    assert_int_equal(add(set, "2026-02-01T00:00:00.000Z", 1, "fine", &err), ERR_INVALID);
    assert_string_equal(
        err.message,
        "r.json: /variants/0/outcome: must be passed, failed, inconclusive, "
        "unsupported or not_run");
    verified_set_free(set);
    assert_int_equal(add_text("{", &err), ERR_INVALID);
    assert_int_equal(add_text("{\"v\":1}", &err), ERR_INVALID);
    assert_int_equal(
        add_text("{\"v\":1,\"rehearsal\":false,\"date\":\"d\",\"gpu\":\"g\","
                 "\"driver\":\"d\",\"worker_build\":\"b\",\"variants\":[{}]}",
                 &err),
        ERR_INVALID);
    assert_int_equal(add_text("{\"v\":1,\"rehearsal\":true,\"date\":\"d\",\"gpu\":\"g\","
                              "\"driver\":\"d\",\"worker_build\":\"b\",\"variants\":[]}",
                              &err),
                     ERR_INVALID);
    assert_string_equal(err.message, "r.json: is a rehearsal, which verifies nothing");
}

/* Those that are committed are readable, or the service would not start. */
static void test_built_in_reports(void **state)
{
    struct verified_set *set = NULL;
    struct err err;

    (void)state;
    assert_int_equal(verified_set_load(NULL, &set, &err), ERR_OK);
    verified_set_free(set);
}

/* The first file that is wrong is told: a good one after it makes nothing of that good.
 */
static void test_the_first_wrong_file_is_told(void **state)
{
    char path[] = "/tmp/reprod-verified-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    json_t *files = json_pack("[s,s,s]", "/no/such/one.json", path, "/no/such/two.json");
    struct verified_set *set = NULL;
    struct err err;

    (void)state;
    assert_non_null(file);
    fprintf(file,
            "{\"v\":1,\"rehearsal\":false,\"date\":\"2026-02-01T00:00:00.000Z\","
            "\"gpu\":\"G\",\"driver\":\"D\",\"worker_build\":\"B\","
            "\"variants\":[]}");
    fclose(file);
    assert_int_equal(verified_set_load(files, &set, &err), ERR_INVALID);
    assert_non_null(strstr(err.message, "/no/such/one.json"));
    assert_null(set);
    unlink(path);
    json_decref(files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newest_report_counts),
        cmocka_unit_test(test_kernels_of_another_shape),
        cmocka_unit_test(test_reports_from_files),
        cmocka_unit_test(test_only_the_version_that_ran),
        cmocka_unit_test(test_what_was_not_run_verifies_nothing),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_built_in_reports),
        cmocka_unit_test(test_the_first_wrong_file_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
