/* The objects of an array, out of JSON in pieces. */
#include "daemon/engine/elements.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void take(void *arg, const char *text, size_t length)
{
    assert_int_equal(strlen(text), length);
    buf_printf(arg, "%s;", text);
}

static void take_other(void *arg, const char *text, size_t length)
{
    (void)length;
    buf_printf(arg, "!%s;", text);
}

static void check(const char *json, bool whole, const char *expected)
{
    struct buf text = BUF_INIT;
    struct elements elements = { .arrays = { { "jobs", true, take },
                                             { "errors", false, take_other } },
                                 .arg = &text };

    for (const char *c = json; *c; c++) {
        elements_feed(&elements, c, 1);
    }
    assert_int_equal(elements_whole(&elements), whole);
    assert_string_equal(text.data ? text.data : "", expected);
    elements_release(&elements);
    buf_release(&text);
}

static void test_objects_are_found(void **state)
{
    (void)state;
    check("{\"jobs\":[]}", true, "");
    check("{\"a\":{\"jobs\":[{\"no\":1}]},\"jobs\":[{\"b\":{\"c\":[1,{}]}} , {}]}", true,
          "{\"b\":{\"c\":[1,{}]}};{};");
    check("{\"jobs\":[{\"a\":\"]}\\\"{\"}],\"errors\":[{\"x\":1}]}", true,
          "{\"a\":\"]}\\\"{\"};!{\"x\":1};");
    check("{\"jobs\":[7,\"{\",[{\"deep\":1}],{\"a\":1}]}", true, "{\"a\":1};");
    check("{\"jobs\":{\"a\":{}},\"other\":[{}]}", false, "");
    check("{\"a name that is longer than any key\":[{}],\"jobs\":[{}]}", true, "{};");
}

static void test_what_is_cut_off_is_not_whole(void **state)
{
    (void)state;
    check("", false, "");
    check("{\"jobs\":[{\"a\":1}", false, "{\"a\":1};");
    check("{\"jobs\":[{\"a\":1}]", false, "{\"a\":1};");
    check("{\"nodes\":[]}", false, "");
    check("}]}", false, "");
}

static void test_one_that_is_too_long_is_left_out(void **state)
{
    struct buf text = BUF_INIT, json = BUF_INIT;
    struct elements elements = { .arrays = { { "jobs", true, take },
                                             { "errors", false, take_other } },
                                 .arg = &text };

    (void)state;
    buf_puts(&json, "{\"jobs\":[{\"a\":1},{\"b\":\"");
    for (int i = 0; i <= ELEMENT_MAX; i++) {
        buf_putc(&json, 'x');
    }
    buf_puts(&json, "\"},{\"c\":3}]}");
    elements_feed(&elements, json.data, json.length);
    assert_true(elements_whole(&elements));
    assert_int_equal(elements.skipped, 1);
    assert_string_equal(text.data, "{\"a\":1};{\"c\":3};");
    elements_release(&elements);
    buf_release(&text);
    buf_release(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects_are_found),
        cmocka_unit_test(test_what_is_cut_off_is_not_whole),
        cmocka_unit_test(test_one_that_is_too_long_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
