/* Heads of requests as the library leaves them in its buffer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/http/head.h"

/* What is wrong with a head that the library of VERSION left as LINES, of which it took
 * the version and one field.  "" for nothing. */
struct field {
    size_t name, name_length, value, value_length;
};

static const char *check(const char *library, const char *lines, size_t size,
                         struct field field)
{
    struct head head;
    const char *problem;

    head_begin(&head, lines, library);
    head_field(&head, lines + field.name, field.name_length, lines + field.value,
               field.value_length);
    problem = head_end(&head, (uintptr_t)lines + size);
    return problem ? problem : "";
}

#define CHECK(library, lines, ...)                                                       \
    check(library, lines, sizeof(lines) - 1, (struct field)__VA_ARGS__)

static void test_a_head_as_it_should_be(void **state)
{
    (void)state;
    assert_string_equal(CHECK("0.9.75", "HTTP/1.1\0\0Host\0 a\0\0\0\0", { 10, 4, 16, 1 }),
                        "");
    assert_string_equal(
        CHECK("0.9.75", "HTTP/1.1\0\0X-a_1\0\t \0\0\0\0", { 10, 5, 18, 0 }), "");
}

static void test_line_ends(void **state)
{
    (void)state;
    /* LF alone behind the request line, the field, the head. */
    assert_string_not_equal(CHECK("0.9.75", "HTTP/1.1\0Host\0a\0\0\0\0", { 9, 4, 14, 1 }),
                            "");
    assert_string_not_equal(
        CHECK("0.9.75", "HTTP/1.1\0\0Host\0a\0\0\0", { 10, 4, 15, 1 }), "");
    /* A NUL within the value, or within the name. */
    assert_string_not_equal(
        CHECK("0.9.75", "HTTP/1.1\0\0Host\0a\0b\0\0\0\0", { 10, 4, 15, 1 }), "");
    assert_string_not_equal(
        CHECK("0.9.75", "HTTP/1.1\0\0Ho\0st\0a\0\0\0\0", { 10, 2, 16, 1 }), "");
    /* A value that was put together elsewhere: it continued. */
    assert_string_not_equal(
        CHECK("0.9.75", "HTTP/1.1\0\0Host\0\0\0\0\0aaaa", { 10, 4, 18, 1 }), "");
}

static void test_values(void **state)
{
    (void)state;
    assert_string_equal(
        CHECK("0.9.75", "HTTP/1.1\0\0Host\0a\tb\xc3\0\0\0\0", { 10, 4, 15, 4 }), "");
    assert_non_null(
        strstr(CHECK("1.0.1", "HTTP/1.1\0\0Host\0a\rb\0\0\0\0", { 10, 4, 15, 3 }),
               "control character"));
}

static void test_names(void **state)
{
    (void)state;
    assert_non_null(strstr(
        CHECK("0.9.75", "HTTP/1.1\0\0Host \0a\0\0\0\0", { 10, 5, 16, 1 }), "a token"));
    assert_non_null(
        strstr(CHECK("0.9.75", "HTTP/1.1\0\0\0a\0\0\0\0", { 10, 0, 11, 1 }), "a token"));
    assert_non_null(strstr(
        CHECK("1.0.1", "HTTP/1.1\0\0Host \0a\0\0\0\0", { 10, 5, 16, 1 }), "a token"));
}

/* Where it is not known how the library reads, nothing is concluded from places. */
static void test_another_library(void **state)
{
    static const char *const others[] = { "0.9.63", "0.9.77", "1.0.1", "2.0" };

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_string_equal(CHECK(others[i], "HTTP/1.1\0Host\0a\0\0", { 9, 4, 14, 1 }),
                            "");
    }
    assert_string_not_equal(CHECK("0.9.76", "HTTP/1.1\0Host\0a\0\0", { 9, 4, 14, 1 }),
                            "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_head_as_it_should_be),
        cmocka_unit_test(test_line_ends),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_another_library),
    };

    return cmocka_run_group_tests_name("head", tests, NULL, NULL);
}
