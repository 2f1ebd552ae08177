/* Bytes to lines, lines to objects, and text that is not UTF-8. */
#include "daemon/process/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/mem.h"

/* Collects lines, separated by '|'. */
static int collect(void *arg, const char *text, size_t length)
{
    buf_add(arg, text, length);
    buf_putc(arg, '|');
    return 0;
}

static int refuse(void *arg, const char *text, size_t length)
{
    (void)text;
    (void)length;
    ++*(int *)arg;
    return 42;
}

static void test_lines_do_not_depend_on_how_bytes_come(void **state)
{
    static const char text[] = "one\n\ntwo two\nthree\nrest";
    size_t length = sizeof text - 1;

    (void)state;
    for (size_t step = 1; step <= length; step++) {
        struct wire_lines lines;
        struct buf seen = BUF_INIT;

        wire_lines_init(&lines, 100);
        for (size_t at = 0; at < length; at += step) {
            size_t n = length - at < step ? length - at : step;

            assert_int_equal(wire_lines_feed(&lines, text + at, n, collect, &seen), 0);
        }
        assert_string_equal(seen.data, "one||two two|three|");
        assert_int_equal(lines.count, 4);
        assert_int_equal(wire_lines_rest(&lines), 4);
        wire_lines_release(&lines);
        buf_release(&seen);
    }
}

static void test_a_line_may_have_max_bytes_and_no_more(void **state)
{
    static const char *const fits[] = { "12345678\n", "1234\n12345678\n", "12345678" };
    static const char *const too_long[] = { "123456789\n", "1\n123456789", "123456789" };

    (void)state;
    for (size_t split = 0; split < 8; split++) {
        for (int i = 0; i < 3; i++) {
            struct buf seen = BUF_INIT;
            struct wire_lines lines;
            int rc;

            wire_lines_init(&lines, 8);
            assert_int_equal(wire_lines_feed(&lines, fits[i], split, collect, &seen), 0);
            assert_int_equal(wire_lines_feed(&lines, fits[i] + split,
                                             strlen(fits[i]) - split, collect, &seen),
                             0);
            wire_lines_release(&lines);

            wire_lines_init(&lines, 8);
            rc = wire_lines_feed(&lines, too_long[i], split, collect, &seen);
            if (rc == 0) {
                rc = wire_lines_feed(&lines, too_long[i] + split,
                                     strlen(too_long[i]) - split, collect, &seen);
            }
            assert_int_equal(rc, ERR_TOO_LARGE);
            wire_lines_release(&lines);
            buf_release(&seen);
        }
    }
}

static void test_the_visitor_can_stop(void **state)
{
    struct wire_lines lines;
    int calls = 0;

    (void)state;
    wire_lines_init(&lines, 100);
    assert_int_equal(wire_lines_feed(&lines, "a\nb\nc\n", 6, refuse, &calls), 42);
    assert_int_equal(calls, 1);
    wire_lines_release(&lines);
}

static void test_objects(void **state)
{
    static const char *const good[] = {
        "{}",
        " {\"a\":1} \r",
        "{\"a\":{\"b\":[1,2,{\"c\":null}]}}",
        "{\"a\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"}",
        "{\"a\":\"\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"}",
        "{\"\xc3\xa4\":\"\xf0\x9f\x98\x80\"}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct err err = { ERR_OK, "" };
        json_t *json = wire_parse(good[i], strlen(good[i]), &err);

        assert_string_equal(err.message, "");
        assert_true(json_is_object(json));
        json_decref(json);
    }
}

static void test_what_is_no_object(void **state)
{
    static const struct {
        const char *text;
        const char *message;
    } bad[] = {
        { "", "not JSON" },
        { "{", "not JSON" },
        { "{} {}", "not JSON" },
        { "{\"a\":NaN}", "not JSON" },
        { "{\"a\":1e999}", "not JSON" },
        { "{\"a\":99999999999999999999}", "not JSON" },
        { "{\"a\":\"\\u0000\"}", "not JSON" },
        { "{'a':1}", "not JSON" },
        { "[1]", "not a JSON object" },
        { "7", "not a JSON object" },
        { "null", "not a JSON object" },
        { "\"text\"", "not a JSON object" },
        { "{\"a\":1,\"a\":1}", "a key appears twice in an object" },
        { "{\"x\":{\"a\":1,\"b\":2,\"a\":3}}", "a key appears twice in an object" },
        { "{\"a\":\"\xff\"}", "not UTF-8" },
        { "{\"a\":\"\xc0\xaf\"}", "not UTF-8" },
        { "{\"a\":\"\xed\xa0\x80\"}", "not UTF-8" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err err = { ERR_OK, "" };

        assert_null(wire_parse(bad[i].text, strlen(bad[i].text), &err));
        assert_int_equal(err.code, ERR_PROTOCOL);
        assert_string_equal(err.message, bad[i].message);
    }
}

static void test_depth_is_bounded(void **state)
{
    (void)state;
    for (int depth = 1; depth < 20000; depth = depth < 40 ? depth + 1 : depth * 3) {
        struct buf text = BUF_INIT;
        struct err err;
        json_t *json;

        buf_puts(&text, "{\"a\":");
        for (int i = 1; i < depth; i++) {
            buf_putc(&text, '[');
        }
        buf_puts(&text, "1");
        for (int i = 1; i < depth; i++) {
            buf_putc(&text, ']');
        }
        buf_putc(&text, '}');
        json = wire_parse(text.data, text.length, &err);
        assert_int_equal(json != NULL, depth <= WIRE_DEPTH_MAX);
        json_decref(json);
        buf_release(&text);
    }
}

static void test_any_bytes_become_a_string(void **state)
{
    char bytes[256];
    json_t *json;
    char *text;

    (void)state;
    for (int i = 0; i < 256; i++) {
        bytes[i] = (char)i;
    }
    json = wire_string(bytes, sizeof bytes);
    text = json_dumps(json, JSON_ENCODE_ANY);
    assert_non_null(text);
    free(text);
    json_decref(json);

    json = wire_string("a\0\xc3\xa4\xff", 5);
    assert_string_equal(json_string_value(json), "a\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd");
    json_decref(json);
    json = wire_string(NULL, 0);
    assert_string_equal(json_string_value(json), "");
    json_decref(json);
}

static void test_a_cut_character_is_cleaned(void **state)
{
    char text[8];

    (void)state;
    copy_text(text, sizeof text, "abcde\xe2\x82\xac");
    wire_clean(text);
    assert_string_equal(text, "abcde??");
    copy_text(text, sizeof text, "\xe2\x82\xac \xc3\xa4");
    wire_clean(text);
    assert_string_equal(text, "\xe2\x82\xac \xc3\xa4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_do_not_depend_on_how_bytes_come),
        cmocka_unit_test(test_a_line_may_have_max_bytes_and_no_more),
        cmocka_unit_test(test_the_visitor_can_stop),
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_what_is_no_object),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_any_bytes_become_a_string),
        cmocka_unit_test(test_a_cut_character_is_cleaned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
