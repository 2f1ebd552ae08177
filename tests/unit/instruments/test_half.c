/* The 16-bit formats, exhaustively: every value widened, and every boundary between two
 * neighbours narrowed from both sides and from the tie. */
#include "workloads/instruments/half.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A format: how it is converted, and what it is. */
struct format {
    float (*widen)(uint16_t bits);
    uint16_t (*narrow)(float value);
    int exponent_bits, fraction_bits;
};

static float widen_f16(uint16_t bits)
{
    return f32_from_f16(bits);
}

static uint16_t narrow_f16(float value)
{
    return f16_from_f32(value);
}

static float widen_bf16(uint16_t bits)
{
    return f32_from_bf16(bits);
}

static uint16_t narrow_bf16(float value)
{
    return bf16_from_f32(value);
}

static const struct format F16 = { widen_f16, narrow_f16, 5, 10 };
static const struct format BF16 = { widen_bf16, narrow_bf16, 8, 7 };

/* By the definition of the format; magnitude of a finite value, also "one beyond the
 * largest" for the bits of infinity. */
static double magnitude_of(const struct format *f, unsigned bits)
{
    int exponent = (int)(bits >> f->fraction_bits);
    int fraction = (int)(bits & ((1u << f->fraction_bits) - 1));
    int bias = (1 << (f->exponent_bits - 1)) - 1;
    if (exponent == 0) {
        return ldexp(fraction, 1 - bias - f->fraction_bits);
    }
    return ldexp(fraction + (1 << f->fraction_bits), exponent - bias - f->fraction_bits);
}

static void check_format(const struct format *f)
{
    unsigned infinity = 0x7fff >> f->fraction_bits << f->fraction_bits;
    unsigned quiet = 1u << (f->fraction_bits - 1);
    for (unsigned bits = 0; bits < 0x8000; bits++) {
        for (unsigned sign = 0; sign <= 0x8000; sign += 0x8000) {
            float wide = f->widen((uint16_t)(sign | bits));
            assert_int_equal(f32_bits(wide) >> 31, sign >> 15);
            if (bits > infinity) {
                assert_true(isnan(wide) && (f32_bits(wide) & 0x400000));
                assert_int_equal(f->narrow(wide), sign | bits | quiet);
                continue;
            }
            assert_int_equal(f->narrow(wide), sign | bits);
            if (bits == infinity) {
                assert_true(isinf(wide));
            } else {
                assert_true((double)fabsf(wide) == magnitude_of(f, bits));
            }
        }
    }
}

/* Between BITS and its upper neighbour lies a tie; it goes to the even one. */
static void check_rounding(const struct format *f)
{
    unsigned infinity = 0x7fff >> f->fraction_bits << f->fraction_bits;
    for (unsigned bits = 0; bits < infinity; bits++) {
        double middle = (magnitude_of(f, bits) + magnitude_of(f, bits + 1)) / 2;
        float tie = (float)middle;
        float below, above;
        assert_true((double)tie == middle);
        below = nextafterf(tie, 0.0f);
        above = nextafterf(tie, INFINITY);
        assert_int_equal(f->narrow(tie), bits + bits % 2);
        assert_int_equal(f->narrow(-tie), 0x8000 | (bits + bits % 2));
        assert_int_equal(f->narrow(below), bits);
        assert_int_equal(f->narrow(-below), 0x8000 | bits);
        assert_int_equal(f->narrow(above), bits + 1);
        assert_int_equal(f->narrow(-above), 0x8000 | (bits + 1));
    }
    assert_int_equal(f->narrow(0x1.fffffep127f), infinity);
    assert_int_equal(f->narrow(-0x1.fffffep127f), 0x8000 | infinity);
    assert_int_equal(f->narrow(f32_from_bits(1)), 0);
    assert_int_equal(f->narrow(f32_from_bits(0x80000001)), 0x8000);
}

static void test_f16(void **state)
{
    (void)state;
    check_format(&F16);
    check_rounding(&F16);
}

static void test_bf16(void **state)
{
    (void)state;
    check_format(&BF16);
    check_rounding(&BF16);
}

/* A signalling NaN whose payload lies below what the narrow format keeps must not become
 * an infinity. */
static void test_nan(void **state)
{
    (void)state;
    assert_int_equal(f16_from_f32(f32_from_bits(0x7f800001)), 0x7e00);
    assert_int_equal(bf16_from_f32(f32_from_bits(0x7f800001)), 0x7fc0);
    assert_int_equal(f16_from_f32(f32_from_bits(0xffffffff)), 0xffff);
    assert_int_equal(bf16_from_f32(f32_from_bits(0xffffffff)), 0xffff);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
