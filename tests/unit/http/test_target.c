/* The first line of a request: its path is cut and decoded, and what is too long or not
 * valid is refused. */
#include "api/http/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/buf.h"

static void test_path_is_cut_before_it_is_decoded(void **state)
{
    struct target t;

    (void)state;
    assert_null(target_parse("/v1/runs/a%2Fb/log?x=1", &t));
    assert_int_equal(t.segment_count, 4);
    assert_string_equal(t.segments[2], "a/b");
    assert_string_equal(t.segments[3], "log");
    assert_string_equal(t.path, "/v1/runs/a%2Fb/log");
    target_release(&t);
}

static void test_root_has_no_segments(void **state)
{
    struct target t;

    (void)state;
    assert_null(target_parse("/", &t));
    assert_int_equal(t.segment_count, 0);
    target_release(&t);
    assert_null(target_parse("/a/", &t));
    assert_int_equal(t.segment_count, 2);
    assert_string_equal(t.segments[1], "");
    target_release(&t);
}

static void test_query_is_decoded_pair_by_pair(void **state)
{
    struct target t;

    (void)state;
    assert_null(target_parse("/?a=1%262&b+c=%2B+&flag&&e=", &t));
    assert_int_equal(t.parameter_count, 4);
    assert_string_equal(target_parameter(&t, "a"), "1&2");
    assert_string_equal(target_parameter(&t, "b c"), "+ ");
    assert_string_equal(target_parameter(&t, "flag"), "");
    assert_string_equal(target_parameter(&t, "e"), "");
    assert_null(target_parameter(&t, "c"));
    target_release(&t);
}

static void test_absolute_form_names_its_authority(void **state)
{
    struct target t;

    (void)state;
    assert_null(target_parse("http://evil.example:80/v1/jobs?a=b", &t));
    assert_string_equal(t.authority, "evil.example:80");
    assert_string_equal(t.segments[1], "jobs");
    assert_string_equal(target_parameter(&t, "a"), "b");
    target_release(&t);
}

static void test_bad_targets_are_refused(void **state)
{
    static const char *const bad[] = { "/a%00b", "/%0ab", "/a%",   "/a%4",     "/%zz",
                                       "/?a=%",  "/?%00", "a/b",   "",         "http://x",
                                       "/a%7f",  "*",     "/\x01", "//evil/%g" };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct target t;

        if (!target_parse(bad[i], &t)) {
            fail_msg("accepted %s", bad[i]);
        }
        target_release(&t);
    }
}

static void test_too_much_is_refused(void **state)
{
    struct buf many = BUF_INIT;
    struct target t;

    (void)state;
    for (int i = 0; i <= TARGET_SEGMENTS_MAX; i++) {
        buf_puts(&many, "/a");
    }
    assert_non_null(target_parse(many.data, &t));
    target_release(&t);
    buf_release(&many);
    buf_puts(&many, "/?");
    for (int i = 0; i <= TARGET_PARAMETERS_MAX; i++) {
        buf_puts(&many, "a=1&");
    }
    assert_non_null(target_parse(many.data, &t));
    target_release(&t);
    buf_release(&many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path_is_cut_before_it_is_decoded),
        cmocka_unit_test(test_root_has_no_segments),
        cmocka_unit_test(test_query_is_decoded_pair_by_pair),
        cmocka_unit_test(test_absolute_form_names_its_authority),
        cmocka_unit_test(test_bad_targets_are_refused),
        cmocka_unit_test(test_too_much_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
