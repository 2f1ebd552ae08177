/* The generator: published vectors, ranges, and independence of anything but the index.
 */
#include "workloads/instruments/philox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SAMPLES = 200000 };

static void assert_words(struct philox words, uint32_t w0, uint32_t w1, uint32_t w2,
                         uint32_t w3)
{
    assert_int_equal(words.v[0], w0);
    assert_int_equal(words.v[1], w1);
    assert_int_equal(words.v[2], w2);
    assert_int_equal(words.v[3], w3);
}

/* philox4x32-10 in the kat_vectors of Random123. */
static void test_known_answers(void **state)
{
    (void)state;
    assert_words(philox4x32(0, 0, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
    assert_words(philox4x32(UINT64_MAX, UINT64_MAX, UINT64_MAX), 0x408f276d, 0x41c83b0e,
                 0xa20bc7c6, 0x6d5451fd);
    assert_words(
        philox4x32(0x299f31d0a4093822u, 0x0370734413198a2eu, 0x85a308d3243f6a88u),
        0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1);
}

static void test_words_of_elements(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 64; i++) {
        struct philox by_four = philox4x32(5, 6, i / 4), by_two = philox4x32(5, 6, i / 2);
        uint64_t low = by_two.v[i % 2 * 2], high = by_two.v[i % 2 * 2 + 1];
        assert_int_equal(philox_u32(5, 6, i), by_four.v[i % 4]);
        assert_true(philox_u64(5, 6, i) == (high << 32 | low));
    }
}

static void test_streams(void **state)
{
    int count;
    uint64_t streams[] = {
        philox_stream(1, "conv_wgrad", "x"), philox_stream(1, "conv_wgrad", "dy"),
        philox_stream(2, "conv_wgrad", "x"), philox_stream(1, "conv_wgra", "dx"),
        philox_stream(1, "x", "conv_wgrad"), philox_stream(1, "", "conv_wgradx"),
        philox_stream(1, "conv_wgradx", ""), philox_stream(0, "", ""),
    };

    (void)state;
    count = (int)(sizeof streams / sizeof streams[0]);
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < i; j++) {
            assert_true(streams[i] != streams[j]);
        }
    }
    assert_true(streams[0] == philox_stream(1, "conv_wgrad", "x"));
}

static void test_uniform(void **state)
{
    double sum32, sum64, low, high;

    (void)state;
    sum32 = 0;
    sum64 = 0;
    low = 1;
    high = -1;
    for (uint64_t i = 0; i < SAMPLES; i++) {
        float x = philox_uniform_f32(3, 4, i);
        double y = philox_uniform_f64(3, 4, i);
        double units;
        assert_true(x >= -1.0f && x < 1.0f && y >= -1.0 && y < 1.0);
        units = (double)x * 0x1p23;
        assert_true(units == (double)(int32_t)units);
        sum32 += (double)x;
        sum64 += y;
        low = y < low ? y : low;
        high = y > high ? y : high;
    }
    /* The mean of 2e5 values has a standard deviation of 0.0013. */
    assert_true(sum32 / SAMPLES < 0.0065 && sum32 / SAMPLES > -0.0065);
    assert_true(sum64 / SAMPLES < 0.0065 && sum64 / SAMPLES > -0.0065);
    assert_true(low < -0.999 && high > 0.999);
}

/* Exponents uniform in -12 .. 12, both signs, and every mantissa bit seen both ways. */
static void test_wide(void **state)
{
    uint64_t ones, zeros;
    int counts32[25] = { 0 }, counts64[25] = { 0 }, negative = 0;

    (void)state;
    ones = 0;
    zeros = 0;
    for (uint64_t i = 0; i < SAMPLES; i++) {
        uint32_t x = f32_bits(philox_wide_f32(3, 4, i));
        uint64_t y = f64_bits(philox_wide_f64(3, 4, i));
        int e32 = (int)(x >> 23 & 0xff) - 127, e64 = (int)(y >> 52 & 0x7ff) - 1023;
        assert_in_range(e32 + 12, 0, 24);
        assert_in_range(e64 + 12, 0, 24);
        counts32[e32 + 12]++;
        counts64[e64 + 12]++;
        negative += x >> 31;
        ones |= y | (uint64_t)(x & 0x807fffff) << 32;
        zeros |= ~y & ~((uint64_t)(x & 0x807fffff) << 32);
    }
    for (int i = 0; i < 25; i++) { /* 8000 expected, standard deviation 88 */
        assert_in_range(counts32[i], 7550, 8450);
        assert_in_range(counts64[i], 7550, 8450);
    }
    assert_in_range(negative, SAMPLES / 2 - 1200, SAMPLES / 2 + 1200);
    assert_true((ones & zeros & 0x800fffffffffffffu) == 0x800fffffffffffffu);
}

static void test_index(void **state)
{
    static const uint64_t limits[] = { 1,
                                       2,
                                       3,
                                       1000,
                                       1u << 31,
                                       UINT32_MAX,
                                       1ull << 32,
                                       (1ull << 32) + 1,
                                       1ull << 63,
                                       UINT64_MAX,
                                       0x123456789abcdefu };

    (void)state;
    __extension__ typedef unsigned __int128 uint128;
    for (size_t k = 0; k < sizeof limits / sizeof limits[0]; k++) {
        for (uint64_t i = 0; i < 1000; i++) {
            uint64_t index = philox_index(9, 8, i, limits[k]);
            uint128 product = (uint128)philox_u64(9, 8, i) * limits[k];
            assert_true(index < limits[k]);
            assert_true(index == (uint64_t)(product >> 64));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers), cmocka_unit_test(test_words_of_elements),
        cmocka_unit_test(test_streams),       cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_wide),          cmocka_unit_test(test_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
