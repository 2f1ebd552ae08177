/* What `make check-ptx` left, and what it is worth. */
#include "daemon/evidence/verified.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/embed.h"

#define HEAD                                                                             \
    "{\"v\":1,\"date\":\"2026-11-26T00:00:00.000Z\",\"toolkit\":\"release 13.0\","       \
    "\"target\":\"sm_75\",\"variants\":["
#define VARIANT(workload, name, outcome, sizes)                                          \
    "{\"workload\":\"" workload "\",\"variant\":\"" name                                 \
    "\",\"version\":2,\"outcome\":\"" outcome "\",\"sizes\":" sizes "}"

static enum err_code read_text(struct executed_set *set, const char *text,
                               struct err *err)
{
    return executed_set_read(set, "results.json", text, strlen(text), err);
}

static void test_what_was_executed(void **state)
{
    struct executed_set *set = executed_set_new();
    struct executed e;
    struct err err;

    (void)state;
    assert_false(executed_find(set, "w", "ordered", &e));
    assert_int_equal(
        read_text(
            set,
            HEAD VARIANT("w", "ordered", "passed", "[\"small\",\"medium\"]") "," VARIANT(
                "w", "broken", "failed", "[\"small\"]") "]}",
            &err),
        ERR_OK);
    assert_true(executed_find(set, "w", "ordered", &e));
    assert_string_equal(e.date, "2026-11-26T00:00:00.000Z");
    assert_string_equal(e.toolkit, "release 13.0");
    assert_string_equal(e.target, "sm_75");
    assert_string_equal(e.sizes, "small, medium");
    assert_int_equal(e.version, 2);
    assert_string_equal(executed_outcome(&e, 2), "passed");
    assert_string_equal(executed_outcome(&e, 1), "outdated");
    assert_true(executed_find(set, "w", "broken", &e));
    assert_string_equal(executed_outcome(&e, 2), "failed");
    assert_string_equal(e.sizes, "small");
    assert_false(executed_find(set, "w", "unordered", &e));
    assert_false(executed_find(set, "x", "ordered", &e));
    executed_set_free(set);
    executed_set_free(NULL);
}

static void test_what_is_none_is_refused(void **state)
{
    struct executed_set *set = executed_set_new();
    struct executed e;
    struct err err;

    (void)state;
    assert_int_equal(read_text(set, "{", &err), ERR_INVALID);
    assert_non_null(strstr(err.message, "results.json: line 1"));
    assert_int_equal(read_text(set, "{\"v\":2}", &err), ERR_INVALID);
    assert_int_equal(
        read_text(set, HEAD VARIANT("w", "ordered", "fine", "[]") "]}", &err),
        ERR_INVALID);
    assert_string_equal(err.message,
                        "results.json: /variants/0/outcome: must be passed or failed");
    assert_false(executed_find(set, "w", "ordered", &e));
    executed_set_free(set);
}

/* What is committed is readable, and says nothing of a GPU. */
static void test_what_is_built_in(void **state)
{
    const struct embed *file = embed_find("tests/ptx/results.json");
    struct executed_set *set = executed_set_new();
    struct verified_set *verified = verified_set_new();
    struct executed e;
    struct err err;

    (void)state;
    assert_non_null(file);
    assert_int_equal(
        executed_set_read(set, file->name, file->start, embed_size(file), &err), ERR_OK);
    assert_true(executed_find(set, "bias_add_bwd", "ordered", &e));
    assert_true(
        executed_find(verified_executed(verified), "bias_add_bwd", "ordered", &e));
    assert_string_equal(executed_outcome(&e, e.version), "passed");
    executed_set_free(set);
    verified_set_free(verified);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_executed),
        cmocka_unit_test(test_what_is_none_is_refused),
        cmocka_unit_test(test_what_is_built_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
