/* Written JSON has its commas, is null where a value is not known, and is valid UTF-8
 * for any bytes. */
#include "daemon/base/json_out.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/array.h"
#include "daemon/base/text.h"

static void test_structure(void **state)
{
    struct json_out out = JSON_OUT_INIT;

    (void)state;
    out_open(&out, NULL, '{');
    out_open(&out, "a", '[');
    out_close(&out, ']');
    out_open(&out, "b", '[');
    out_int(&out, NULL, -1);
    out_null(&out, NULL);
    out_open(&out, NULL, '{');
    out_close(&out, '}');
    out_close(&out, ']');
    out_bool(&out, "c", true);
    out_name(&out, "d", "");
    out_real(&out, "e", INFINITY);
    out_ms(&out, "f", 12000345);
    out_time(&out, "g", 0);
    out_json(&out, "h", "{\"x\":1}");
    out_close(&out, '}');
    assert_string_equal(out.buf.data,
                        "{\"a\":[],\"b\":[-1,null,{}],\"c\":true,\"d\":null,\"e\":null,"
                        "\"f\":12.000345,\"g\":null,\"h\":{\"x\":1}}");
    buf_release(&out.buf);
}

static void test_integers(void **state)
{
    const int64_t values[] = { 0,         9,         10,           -10, 1700000000123,
                               INT64_MAX, INT64_MIN, INT64_MIN + 1 };

    (void)state;
    for (int i = 0; i < COUNT_OF(values); i++) {
        struct json_out out = JSON_OUT_INIT;
        char text[32];

        out_int(&out, NULL, values[i]);
        snprintf(text, sizeof text, "%" PRId64, values[i]);
        assert_string_equal(out.buf.data, text);
        buf_release(&out.buf);
    }
}

static void test_null_where_it_is_not_known(void **state)
{
    struct json_out out = JSON_OUT_INIT;

    (void)state;
    out_open(&out, NULL, '{');
    for (int known = 0; known < 2; known++) {
        out_int_if(&out, "a", known, 7);
        out_bool_if(&out, "b", known, false);
        out_ms_if(&out, "c", known, 1500000);
        assert_int_equal(out_object(&out, "d", known), known);
    }
    out_close(&out, '}');
    out_close(&out, '}');
    assert_string_equal(out.buf.data,
                        "{\"a\":null,\"b\":null,\"c\":null,\"d\":null,"
                        "\"a\":7,\"b\":false,\"c\":1.500000,\"d\":{}}");
    buf_release(&out.buf);
}

/* Every pair of bytes, between two letters, gives JSON that a strict parser takes. */
static void test_any_bytes_give_valid_json(void **state)
{
    (void)state;
    for (int high = 0; high < 256; high++) {
        for (int low = 0; low < 256; low++) {
            const char bytes[] = { 'a', (char)high, (char)low, 'z' };
            struct json_out out = JSON_OUT_INIT;
            json_t *back;

            out_bytes(&out, NULL, bytes, sizeof bytes);
            back = json_loadb(out.buf.data, out.buf.length,
                              JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
            if (!back) {
                fail_msg("%02x %02x: %s", high, low, out.buf.data);
            }
            if (high < 0x80 && low < 0x80) {
                assert_int_equal(json_string_length(back), sizeof bytes);
                assert_memory_equal(json_string_value(back), bytes, sizeof bytes);
            }
            json_decref(back);
            buf_release(&out.buf);
        }
    }
}

static void test_utf8_stays(void **state)
{
    struct json_out out = JSON_OUT_INIT;

    (void)state;
    out_text(&out, NULL, "µ≠😀\xed\xa0\x80");
    assert_string_equal(out.buf.data, "\"µ≠😀���\"");
    buf_release(&out.buf);
}

/* It says the same, and nothing in it acts on the terminal that it is read on. */
static void test_what_acts_on_a_terminal_is_escaped(void **state)
{
    static const char text[] =
        "\x1b[2J\x7f\xc2\x9b"
        "31m\xe2\x80\xae\xe2\x81\xa9µ";
    struct json_out out = JSON_OUT_INIT;
    json_t *inner = json_pack("{s:s}", text, text);
    char *json = json_dumps(inner, 0);
    json_t *root;

    (void)state;
    out_open(&out, NULL, '{');
    out_text(&out, "text", text);
    out_json(&out, "json", json);
    out_close(&out, '}');
    for (size_t i = 0; i < out.buf.length; i++) {
        assert_int_equal(text_control(out.buf.data + i, out.buf.length - i), -1);
    }
    assert_non_null(
        strstr(out.buf.data, "\"text\":\"\\u001b[2J\\u007f\\u009b31m\\u202e"));
    root = json_loads(out.buf.data, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(root, "text")), text);
    assert_true(json_equal(json_object_get(root, "json"), inner));
    json_decref(root);
    json_decref(inner);
    free(json);
    buf_release(&out.buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_structure),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_null_where_it_is_not_known),
        cmocka_unit_test(test_any_bytes_give_valid_json),
        cmocka_unit_test(test_utf8_stays),
        cmocka_unit_test(test_what_acts_on_a_terminal_is_escaped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
