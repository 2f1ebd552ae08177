/* Difference signatures: every figure against cases whose answer is known by hand. */
#include "daemon/trace/difference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 4096 };

static struct difference floats(const float *a, const float *b, int64_t count)
{
    struct difference d;

    difference_compute("float32", count, a, b, &d);
    return d;
}

static void test_equal(void **state)
{
    const float a[] = { 1, -0.0f, NAN, INFINITY };
    struct difference d = floats(a, a, 4);

    (void)state;
    assert_int_equal(d.elements, 4);
    assert_int_equal(d.differ, 0);
    assert_int_equal(d.first, -1);
    assert_int_equal(d.last, -1);
    assert_int_equal(d.max_ulp, 0);
    assert_int_equal(d.period, 0);
    assert_int_equal(d.nan[0], 1);
    assert_int_equal(d.infinite[1], 1);
    assert_int_equal(d.bit_count, 32);
}

static void test_units_in_the_last_place(void **state)
{
    const float one = 1;
    float a[4] = { 1, 1, -1e-45f, 0 };
    float b[4] = { nextafterf(one, 2), 1, 1e-45f, -0.0f };
    struct difference d = floats(a, b, 4);

    (void)state;
    assert_int_equal(d.differ, 3);
    assert_int_equal(d.first, 0);
    assert_int_equal(d.last, 3);
    assert_int_equal(d.max_ulp, 2); /* across zero: one to each side */
    assert_int_equal(d.zero_signs, 1);
    assert_int_equal(d.bits[0], 1);
    assert_int_equal(d.bits[31], 2);
    assert_true(d.max_absolute == (double)(nextafterf(one, 2) - one));
}

static void test_every_dtype(void **state)
{
    static const struct {
        const char *dtype;
        uint64_t a, b;
        uint64_t ulp;
        double absolute;
    } cases[] = {
        { "float32", 0x3f800000, 0x3f800003, 3, 3 * 0x1p-23 },
        { "float64", 0x3ff0000000000000, 0x3fefffffffffffff, 1, 0x1p-53 },
        { "float64", 0x7fefffffffffffff, 0xffefffffffffffff, 0xffdffffffffffffe,
          INFINITY },
        { "float16", 0x3c00, 0x3c02, 2, 0x1p-9 },
        { "float16", 0x0001, 0x8001, 2, 0x1p-23 },
        { "bfloat16", 0x3f80, 0x3f7f, 1, 0x1p-8 },
        { "int32", 0xffffffff, 0x00000001, 0, 2 },
        { "int64", 0x8000000000000000, 0x7fffffffffffffff, 0, 0x1p64 },
        { "uint8", 0xff, 0x01, 0, 254 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct difference d;

        difference_compute(cases[i].dtype, 1, &cases[i].a, &cases[i].b, &d);
        assert_int_equal(d.differ, 1);
        assert_int_equal(d.bit_count, 8 * (int)difference_dtype_bytes(cases[i].dtype));
        assert_true(d.max_ulp == cases[i].ulp);
        assert_true(d.max_absolute == cases[i].absolute);
    }
    assert_int_equal(difference_dtype_bytes("float33"), 0);
    assert_true(difference_dtype_is_float("bfloat16"));
    assert_false(difference_dtype_is_float("int64"));
    assert_false(difference_dtype_is_float("float33"));
}

static void test_what_is_not_finite(void **state)
{
    float a[3] = { 1, INFINITY, 5 };
    float b[3] = { NAN, -INFINITY, 5 };
    struct difference d = floats(a, b, 3);

    (void)state;
    assert_int_equal(d.differ, 2);
    assert_int_equal(d.nan[0], 0);
    assert_int_equal(d.nan[1], 1);
    assert_int_equal(d.infinite[0], 1);
    assert_int_equal(d.infinite[1], 1);
    assert_true(d.max_ulp == 2 * UINT64_C(0x7f800000));
    assert_true(d.max_absolute == 0);
    a[0] = NAN, b[0] = 1; /* on either side */
    a[1] = 1, b[1] = INFINITY;
    d = floats(a, b, 3);
    assert_int_equal(d.nan[0], 1);
    assert_int_equal(d.nan[1], 0);
    assert_true(d.max_ulp == UINT64_C(0x7f800000) - UINT64_C(0x3f800000));
    assert_true(d.max_absolute == 0);
}

/* A difference at each index for which DIFFERS says so. */
static struct difference pattern(bool (*differs)(int i))
{
    uint8_t *a = calloc(N, 1);
    uint8_t *b = calloc(N, 1);
    struct difference d;

    for (int i = 0; i < N; i++) {
        b[i] = differs(i);
    }
    difference_compute("uint8", N, a, b, &d);
    free(a);
    free(b);
    return d;
}

static bool every_27th(int i)
{
    return i % 27 == 5;
}

static bool two_lanes_of_32(int i)
{
    return i % 32 == 7 || i % 32 == 12;
}

static bool one_block(int i)
{
    return i >= 1000 && i < 1100;
}

static bool three(int i)
{
    return i == 0 || i == 2000 || i == 4000;
}

/* Philox would do, too; this keeps the test on its own feet. */
static bool scattered(int i)
{
    return (((unsigned)i * 2654435761u) >> 16) % 5 == 0;
}

static void test_period(void **state)
{
    struct difference d = pattern(every_27th);

    (void)state;
    assert_int_equal(d.period, 27);
    assert_int_equal(d.residues, 1);
    assert_int_equal(d.phase, 5);
    d = pattern(two_lanes_of_32);
    assert_int_equal(d.period, 32);
    assert_int_equal(d.residues, 2);
    assert_int_equal(d.phase, 7);
}

static void test_no_period_by_chance(void **state)
{
    unsigned seed = 1;

    (void)state;
    assert_int_equal(pattern(one_block).period, 0);
    assert_int_equal(pattern(three).period, 0);
    assert_int_equal(pattern(scattered).period, 0);
    for (int round = 0; round < 300; round++) {
        uint8_t a[N] = { 0 };
        uint8_t b[N] = { 0 };
        struct difference d;

        for (int i = 0; i <= round; i++) {
            seed = seed * 1664525u + 1013904223u;
            b[(seed >> 8) % N] = 1;
        }
        difference_compute("uint8", N, a, b, &d);
        assert_int_equal(d.period, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_units_in_the_last_place),
        cmocka_unit_test(test_every_dtype),
        cmocka_unit_test(test_what_is_not_finite),
        cmocka_unit_test(test_period),
        cmocka_unit_test(test_no_period_by_chance),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
