/* Texts for people: lines are wrapped, numbers are rounded towards the safe
 * side, and exact sums and bits are written out. */
#include "daemon/base/text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_wrap(void **state)
{
    struct buf buf = BUF_INIT;

    (void)state;
    text_wrap(&buf, "one two three µµµµ averyverylongword x", 10, 2);
    assert_string_equal(buf.data, "one two\n  three\n  µµµµ\n  averyverylongword\n  x\n");
    buf_release(&buf);
    text_wrap(&buf, "", 10, 2);
    assert_string_equal(buf.data, "\n");
    buf_release(&buf);
}

static void test_wrapped_lines(void **state)
{
    char line[32];

    (void)state;
    assert_true(text_wrapped_line("NGC 19.06+ / TF 2.1", 12, 0, line, sizeof line));
    assert_string_equal(line, "NGC 19.06+ /");
    assert_true(text_wrapped_line("NGC 19.06+ / TF 2.1", 12, 1, line, sizeof line));
    assert_string_equal(line, "TF 2.1");
    assert_false(text_wrapped_line("NGC 19.06+ / TF 2.1", 12, 2, line, sizeof line));
    assert_string_equal(line, "");
    assert_int_equal(text_wrapped_width("NGC 19.06+ / TF 2.1", 12), 12);
}

static void expect_shown(const char *bytes, size_t length, const char *kept,
                         const char *shown)
{
    struct buf buf = BUF_INIT;

    text_show(&buf, bytes, length, kept);
    assert_string_equal(buf.data, shown);
    assert_int_equal(text_width(shown), strlen(shown));
    if (!memchr(bytes, '\0', length)) {
        assert_int_equal(text_width(bytes), strlen(shown));
    }
    text_show(&buf, buf.data, buf.length, kept);
    assert_string_equal(buf.data + strlen(shown), shown);
    buf_release(&buf);
}

static void test_what_acts_on_a_terminal_is_spelt(void **state)
{
    (void)state;
    expect_shown("a\0b", 3, "", "a\\x00b");
    for (int c = 1; c <= 0x9f; c = c == 0x1f ? 0x7f : c + 1) {
        char bytes[4] = { (char)c };
        char shown[8];

        if (c > 0x7f) {
            bytes[0] = '\xc2';
            bytes[1] = (char)c;
        }
        snprintf(shown, sizeof shown, c > 0x7f ? "\\u%04x" : "\\x%02x", (unsigned)c);
        expect_shown(bytes, strlen(bytes), "",
                     c == '\n'   ? "\\n"
                     : c == '\r' ? "\\r"
                     : c == '\t' ? "\\t"
                                 : shown);
    }
    for (int c = 0x2027; c <= 0x206a; c++) {
        char bytes[4] = { (char)0xe2, (char)(c >> 6), (char)(0x80 | (c & 0x3f)) };
        char shown[8];
        bool acts = (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);

        bytes[1] = (char)(0x80 | (c >> 6 & 0x3f));
        snprintf(shown, sizeof shown, "\\u%04x", (unsigned)c);
        assert_int_equal(text_control(bytes, 3), acts ? c : -1);
        if (acts) {
            expect_shown(bytes, 3, "", shown);
        }
    }
    expect_shown(
        "\x9b"
        "2J",
        3, "", "\\x9b2J");
    expect_shown("\xc2", 1, "", "\\xc2");
    expect_shown("\x1b]0;title\x07\n", 11, "", "\\x1b]0;title\\x07\\n");
    assert_int_equal(text_control("\xc2\x9b", 1), -1);
    assert_int_equal(text_control("\xc2\xa0", 2), -1);
    assert_int_equal(text_control(" ", 1), -1);
    assert_int_equal(text_control("~", 1), -1);
}

static void test_what_is_shown_stays(void **state)
{
    struct buf buf = BUF_INIT;
    static const char text[] = "µ \\x1b \\ €\n\t\r𝄞";

    (void)state;
    text_show(&buf, text, strlen(text), "\n\t");
    assert_string_equal(buf.data, "µ \\x1b \\ €\n\t\\r𝄞");
    buf_release(&buf);
}

static void test_layout_counts_what_is_shown(void **state)
{
    struct buf buf = BUF_INIT;

    (void)state;
    text_pad(&buf, "a\x1b[2Jb", 10);
    buf_puts(&buf, "|\n");
    text_wrap(&buf, "one \x1b[0m two", 8, 0);
    text_line(&buf, "%s: %d", "a\nb", 5);
    text_csv(&buf, "\x1b[31m");
    buf_puts(&buf, ",");
    text_csv(&buf, "a\"\x9b\"\n,");
    assert_string_equal(buf.data,
                        "a\\x1b[2Jb |\none\n\\x1b[0m\ntwo\na\\nb: 5\n"
                        "\\x1b[31m,\"a\"\"\\x9b\"\"\\n,\"");
    buf_release(&buf);
}

/* A spreadsheet takes what begins so for a formula, whoever named a thing so. */
static void test_no_field_is_a_formula(void **state)
{
    static const struct {
        const char *text, *field;
    } cases[] = {
        { "=1+1", "'=1+1" },
        { "=cmd|'/C calc'!A0", "'=cmd|'/C calc'!A0" },
        { "=A1,\"x\"", "\"'=A1,\"\"x\"\"\"" },
        { "+1+cmd", "'+1+cmd" },
        { "-1-2", "'-1-2" },
        { "@SUM(A1)", "'@SUM(A1)" },
        { "-inf", "'-inf" },
        { "-0x10", "'-0x10" },
        { "-", "'-" },
        { "\xef\xbc\x9d"
          "1+1",
          "'\xef\xbc\x9d"
          "1+1" },
        { "\xef\xbc\xa0", "'\xef\xbc\xa0" },
        { "\t=1", "\\t=1" }, /* as it is shown */
        { "\r=1", "\"\\r=1\"" },
        { "-1e-12", "-1e-12" },
        { "+2.5", "+2.5" },
        { "-9.6487178248353302", "-9.6487178248353302" },
        { "a=1", "a=1" },
        { "'=1", "'=1" },
        { "", "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf buf = BUF_INIT;

        text_csv(&buf, cases[i].text);
        assert_string_equal(buf.data ? buf.data : "", cases[i].field);
        buf_release(&buf);
    }
}

static void test_numbers(void **state)
{
    char text[TEXT_NUMBER_SIZE];

    (void)state;
    assert_string_equal(text_number(0, text), "0");
    assert_string_equal(text_number(999, text), "999");
    assert_string_equal(text_number(1000, text), "1,000");
    assert_string_equal(text_number(-1234567, text), "-1,234,567");
    assert_string_equal(text_number(-123, text), "-123");
    assert_string_equal(text_number(INT64_MAX, text), "9,223,372,036,854,775,807");
}

static void test_bounds_are_rounded_up(void **state)
{
    char text[TEXT_NUMBER_SIZE];

    (void)state;
    assert_string_equal(text_bound(1, text), "-");
    assert_string_equal(text_bound(0.4507, text), "< 46 %");
    assert_string_equal(text_bound(0.0581, text), "< 5.9 %");
    assert_string_equal(text_bound(0.00299, text), "< 0.299 %");
    assert_string_equal(text_bound(0.0029901, text), "< 0.300 %");
}

static void test_known_sums(void **state)
{
    char text[DECIMAL_SIZE];

    (void)state;
    decimal_from_bits("c0234c24af2b1f00", text);
    assert_int_equal(strchr(text, '.') - text, 2);
    assert_int_equal(strlen(strchr(text, '.')), 17);
    decimal_from_bits("0000000000000000", text);
    assert_string_equal(text, "0.0000000000000000");
    decimal_from_bits("8000000000000000", text);
    assert_string_equal(text, "-0.0000000000000000");
    decimal_from_bits("7ff0000000000000", text);
    assert_string_equal(text, "inf");
}

static void test_no_bits_no_text(void **state)
{
    static const char *const bad[] = { "", "0", "000000000000000g", "00000000000000000" };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[DECIMAL_SIZE] = "?";

        decimal_from_bits(bad[i], text);
        assert_string_equal(text, "");
    }
}

static void test_the_text_names_the_bits(void **state)
{
    uint64_t x = 88172645463325252u; /* xorshift64 (Marsaglia 2003) */

    (void)state;
    for (int i = 0; i < 100000; i++) {
        char bits[17];
        char text[DECIMAL_SIZE];
        double value;
        double back;

        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        memcpy(&value, &x, sizeof value);
        if (isnan(value)) {
            continue;
        }
        snprintf(bits, sizeof bits, "%016llx", (unsigned long long)x);
        decimal_from_bits(bits, text);
        back = strtod(text, NULL);
        assert_memory_equal(&back, &value, sizeof value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_wrapped_lines),
        cmocka_unit_test(test_what_acts_on_a_terminal_is_spelt),
        cmocka_unit_test(test_what_is_shown_stays),
        cmocka_unit_test(test_layout_counts_what_is_shown),
        cmocka_unit_test(test_no_field_is_a_formula),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_bounds_are_rounded_up),
        cmocka_unit_test(test_known_sums),
        cmocka_unit_test(test_no_bits_no_text),
        cmocka_unit_test(test_the_text_names_the_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
