#include "daemon/base/decimal.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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
        cmocka_unit_test(test_known_sums),
        cmocka_unit_test(test_no_bits_no_text),
        cmocka_unit_test(test_the_text_names_the_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
