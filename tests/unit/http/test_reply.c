/* Entity tags follow the body, and If-None-Match is compared with them. */
#include "api/http/reply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_if_none_match(void **state)
{
    (void)state;
    assert_true(etag_listed("\"a1\"", "\"a1\""));
    assert_true(etag_listed("W/\"a1\"", "\"a1\""));
    assert_true(etag_listed("\"x\", \"a1\" ,\"y\"", "\"a1\""));
    assert_true(etag_listed(" * ", "\"a1\""));
    assert_false(etag_listed("a1", "\"a1\""));
    assert_false(etag_listed("\"b\"", "\"a1\""));
    assert_false(etag_listed("", "\"a1\""));
    assert_false(etag_listed("x\"a1\"", "\"a1\""));
    assert_true(etag_listed_strongly("\"x\", \"a1\"", "\"a1\""));
    assert_true(etag_listed_strongly("*", "\"a1\""));
    assert_false(etag_listed_strongly("W/\"a1\"", "\"a1\""));
}

static void test_etags_follow_the_body(void **state)
{
    char a[ETAG_SIZE];
    char b[ETAG_SIZE];

    (void)state;
    etag_of("one", 3, a);
    etag_of("one", 3, b);
    assert_string_equal(a, b);
    etag_of("onf", 3, b);
    assert_string_not_equal(a, b);
    assert_int_equal(a[0], '"');
    assert_int_equal(a[strlen(a) - 1], '"');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_if_none_match),
        cmocka_unit_test(test_etags_follow_the_body),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
