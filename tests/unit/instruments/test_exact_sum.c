/* Exact sums: the rules for special values, the limits of the accumulator, and
 * independence of order and chunks.  Against an arithmetic of arbitrary precision they
 * are compared in tests/system/test_instruments.py. */
#include "workloads/instruments/exact_sum.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "workloads/instruments/bits.h"
#include "workloads/instruments/philox.h"
#include "workloads/workload.h"

static uint64_t sum_bits(int dtype, const void *data, int64_t n)
{
    struct exact_sum sum;
    exact_sum_init(&sum);
    exact_sum_add(&sum, dtype, data, n);
    return f64_bits(exact_sum_round(&sum));
}

#define SUM(dtype, type, ...)                                                            \
    f64_from_bits(sum_bits(dtype, (const type[]){ __VA_ARGS__ },                         \
                           COUNT_OF(((const type[]){ __VA_ARGS__ }))))

static void assert_bits(double value, uint64_t bits)
{
    if (f64_bits(value) != bits) {
        fail_msg("%a (%016llx) instead of %016llx", value,
                 (unsigned long long)f64_bits(value), (unsigned long long)bits);
    }
}

static const uint64_t NAN_BITS = 0x7ff8000000000000u, MINUS_ZERO = 0x8000000000000000u;
static const uint64_t PLUS_INFINITY = 0x7ff0000000000000u;
static const uint64_t MINUS_INFINITY = 0xfff0000000000000u;

static void test_zeros(void **state)
{
    (void)state;
    assert_bits(f64_from_bits(sum_bits(DTYPE_FLOAT32, NULL, 0)), 0);
    assert_bits(SUM(DTYPE_FLOAT32, float, -0.0f, -0.0f), MINUS_ZERO);
    assert_bits(SUM(DTYPE_FLOAT32, float, -0.0f, 0.0f), 0);
    assert_bits(SUM(DTYPE_FLOAT32, float, 1.5f, -0.0f, -1.5f), 0);
    assert_bits(SUM(DTYPE_FLOAT64, double, -0.0), MINUS_ZERO);
    assert_bits(SUM(DTYPE_FLOAT64, double, -0.0, 0.0), 0);
    assert_bits(SUM(DTYPE_FLOAT64, double, -0x1p-1074, -0.0, 0x1p-1074), 0);
    assert_bits(SUM(DTYPE_FLOAT16, uint16_t, 0x8000, 0x8000), MINUS_ZERO);
    assert_bits(SUM(DTYPE_BFLOAT16, uint16_t, 0x8000), MINUS_ZERO);
    assert_bits(SUM(DTYPE_INT32, int32_t, 5, -5), 0);
}

static void test_merged_zeros(void **state)
{
    struct exact_sum sum, minus, plus;
    float minus_zero, zero;

    (void)state;
    minus_zero = -0.0f;
    zero = 0.0f;
    exact_sum_init(&sum);
    exact_sum_init(&minus);
    exact_sum_init(&plus);
    exact_sum_add(&minus, DTYPE_FLOAT32, &minus_zero, 1);
    exact_sum_add(&plus, DTYPE_FLOAT32, &zero, 1);
    exact_sum_merge(&sum, &minus); /* the empty sum adds nothing */
    assert_bits(exact_sum_round(&sum), MINUS_ZERO);
    exact_sum_merge(&sum, &plus);
    exact_sum_merge(&sum, &minus);
    assert_bits(exact_sum_round(&sum), 0);
}

static void test_nan_and_infinity(void **state)
{
    (void)state;
    /* Two quiet NaNs: their fractions sum to a multiple of 2^23. */
    assert_bits(SUM(DTYPE_FLOAT32, uint32_t, 0x7fc00000, 0x7fc00000), NAN_BITS);
    assert_bits(SUM(DTYPE_FLOAT32, uint32_t, 0xffc00001, 0x3f800000), NAN_BITS);
    assert_bits(SUM(DTYPE_FLOAT32, uint32_t, 0x7f800001), NAN_BITS);
    assert_bits(SUM(DTYPE_FLOAT16, uint16_t, 0x7e00, 0x7e00), NAN_BITS);
    assert_bits(SUM(DTYPE_BFLOAT16, uint16_t, 0x7fc0, 0x7fc0), NAN_BITS);
    assert_bits(SUM(DTYPE_FLOAT64, uint64_t, 0x7ff0000000000001u), NAN_BITS);
    assert_bits(SUM(DTYPE_FLOAT64, uint64_t, 0x7ff8000000000000u, 0x7ff8000000000000u),
                NAN_BITS);
    assert_bits(SUM(DTYPE_FLOAT64, uint64_t, 0x7ff0000100000000u), NAN_BITS);
    assert_bits(SUM(DTYPE_FLOAT32, float, INFINITY, INFINITY, -1e38f), PLUS_INFINITY);
    assert_bits(SUM(DTYPE_FLOAT32, float, 1.0f, -INFINITY), MINUS_INFINITY);
    assert_bits(SUM(DTYPE_FLOAT32, float, INFINITY, -INFINITY), NAN_BITS);
    assert_bits(SUM(DTYPE_FLOAT64, double, -INFINITY, 1.0, INFINITY), NAN_BITS);
    assert_bits(SUM(DTYPE_FLOAT64, double, -INFINITY, 1.0), MINUS_INFINITY);
    assert_bits(SUM(DTYPE_FLOAT16, uint16_t, 0x7c00, 0x7c00), PLUS_INFINITY);
    assert_bits(SUM(DTYPE_BFLOAT16, uint16_t, 0xff80, 0x3f80), MINUS_INFINITY);
}

static void test_specials_merge(void **state)
{
    struct exact_sum a, b;
    double infinity, minus_infinity;

    (void)state;
    infinity = INFINITY;
    minus_infinity = -INFINITY;
    exact_sum_init(&a);
    exact_sum_init(&b);
    exact_sum_add(&a, DTYPE_FLOAT64, &infinity, 1);
    exact_sum_add(&b, DTYPE_FLOAT64, &minus_infinity, 1);
    assert_bits(exact_sum_round(&a), PLUS_INFINITY);
    exact_sum_merge(&a, &b);
    assert_bits(exact_sum_round(&a), NAN_BITS);
}

static void test_nan_merges(void **state)
{
    (void)state;
    for (int which = 1; which < 4; which++) {
        struct exact_sum sums[2];

        for (int i = 0; i < 2; i++) {
            double value = which >> i & 1 ? (double)NAN : 1;

            exact_sum_init(&sums[i]);
            exact_sum_add(&sums[i], DTYPE_FLOAT64, &value, 1);
        }
        exact_sum_merge(&sums[0], &sums[1]);
        assert_bits(exact_sum_round(&sums[0]), NAN_BITS);
    }
}

/* More elements than are summed at a time; all others are 0. */
static void test_many_elements(void **state)
{
    enum { MANY = (1 << 18) + 2 };
    static const int dtypes[] = { DTYPE_FLOAT16, DTYPE_BFLOAT16 };
    static const uint16_t ones[] = { 0x3c00, 0x3f80 };
    static uint16_t values[2 * MANY];

    (void)state;
    for (int d = 0; d < 2; d++) {
        values[0] = values[MANY - 2] = values[MANY - 1] = ones[d];
        assert_bits(f64_from_bits(sum_bits(dtypes[d], values, MANY)), f64_bits(3.0));
    }
}

/* Half a unit in the last place and a little more rounds up, wherever the little lies. */
static void test_what_breaks_a_tie(void **state)
{
    (void)state;
    for (int exponent = -900; exponent < 1000; exponent += 37) {
        for (int below = 1; below < 100; below++) {
            double high = ldexp(1, exponent);

            assert_bits(SUM(DTYPE_FLOAT64, double, high, ldexp(1, exponent - 53),
                            ldexp(1, exponent - 53 - below)),
                        f64_bits(nextafter(high, INFINITY)));
        }
    }
}

static void test_rounding(void **state)
{
    double max, ulp;

    (void)state;
    max = 0x1.fffffffffffffp1023;
    ulp = 0x1p971;
    assert_bits(SUM(DTYPE_FLOAT64, double, 1.0, 0x1p-53), f64_bits(1.0));
    assert_bits(SUM(DTYPE_FLOAT64, double, 1.0, 0x1p-53, 0x1p-1074),
                f64_bits(1.0 + 0x1p-52));
    assert_bits(SUM(DTYPE_FLOAT64, double, 1.0 + 0x1p-52, 0x1p-53),
                f64_bits(1.0 + 0x1p-51));
    assert_bits(SUM(DTYPE_FLOAT64, double, 1.0, 0x1p-53, 0x1p-1074, -0x1p-1073),
                f64_bits(1.0));
    assert_bits(SUM(DTYPE_FLOAT64, double, max, max, -max), f64_bits(max));
    assert_bits(SUM(DTYPE_FLOAT64, double, max, ulp / 2), PLUS_INFINITY);
    assert_bits(SUM(DTYPE_FLOAT64, double, -max, -ulp / 2), MINUS_INFINITY);
    assert_bits(SUM(DTYPE_FLOAT64, double, max, ulp / 2, -0x1p-1074), f64_bits(max));
    assert_bits(SUM(DTYPE_FLOAT64, double, 0x1p-1022, -0x1p-1074),
                f64_bits(0x0.fffffffffffffp-1022));
    assert_bits(SUM(DTYPE_FLOAT64, double, -0x1p-1074), f64_bits(-0x1p-1074));
    assert_bits(SUM(DTYPE_FLOAT32, float, 0x1p-149f, 0x1p127f, -0x1p127f),
                f64_bits(0x1p-149));
    assert_bits(SUM(DTYPE_FLOAT16, uint16_t, 0x0001, 0x7bff),
                f64_bits(65504.0 + 0x1p-24));
    assert_bits(SUM(DTYPE_BFLOAT16, uint16_t, 0x0001, 0x8002), f64_bits(-0x1p-133));
}

static void test_integers(void **state)
{
    (void)state;
    assert_bits(SUM(DTYPE_INT64, int64_t, INT64_MIN, INT64_MIN), f64_bits(-0x1p64));
    assert_bits(SUM(DTYPE_INT64, int64_t, INT64_MAX, INT64_MAX, 2), f64_bits(0x1p64));
    assert_bits(SUM(DTYPE_INT64, int64_t, INT64_MAX, -INT64_MAX, -1), f64_bits(-1.0));
    assert_bits(SUM(DTYPE_INT64, int64_t, (1ll << 53) + 1, 1), f64_bits(0x1p53 + 2));
    assert_bits(SUM(DTYPE_INT32, int32_t, INT32_MIN, INT32_MIN, -1),
                f64_bits(-0x1p32 - 1));
    assert_bits(SUM(DTYPE_UINT8, uint8_t, 255, 255, 1), f64_bits(511.0));
}

/* As many large values in one bin as a call can bring, for lengths around those at which
 * the bins are emptied.  Products here are exact. */
static void test_full_bins(void **state)
{
    enum { LONGEST = 1 << 21 };
    float *narrow;
    double *wide;
    int32_t *integers;

    (void)state;
    narrow = malloc(LONGEST * sizeof *narrow);
    wide = malloc(LONGEST * sizeof *wide);
    integers = malloc(LONGEST * sizeof *integers);
    assert_true(narrow && wide && integers);
    for (int sign = -1; sign <= 1; sign += 2) {
        for (int i = 0; i < LONGEST; i++) {
            narrow[i] = (float)sign * 0x1.fffffep127f;
            wide[i] = sign * 0x1.ffffffffp1001;
            integers[i] = INT32_MIN;
        }
        for (int chunk = 1 << 15; chunk <= LONGEST; chunk *= 2) {
            for (int n = chunk; n > chunk - 8; n--) {
                assert_bits(f64_from_bits(sum_bits(DTYPE_FLOAT32, narrow, n)),
                            f64_bits(sign * 0x1.fffffep127 * n));
                assert_bits(f64_from_bits(sum_bits(DTYPE_FLOAT64, wide, n)),
                            f64_bits(sign * 0x1.ffffffffp1001 * n));
                assert_bits(f64_from_bits(sum_bits(DTYPE_INT32, integers, n)),
                            f64_bits(-0x1p31 * n));
            }
        }
    }
    free(narrow);
    free(wide);
    free(integers);
}

/* The sum in one go, in chunks, backwards in single values merged, and unaligned. */
static void check_order(int dtype, size_t bytes_each, const unsigned char *values,
                        int64_t n)
{
    uint64_t expected = sum_bits(dtype, values, n);
    unsigned char *shifted;
    for (int64_t step = 1; step < n; step = 3 * step + 1) {
        struct exact_sum sum;
        exact_sum_init(&sum);
        for (int64_t from = (n - 1) / step * step; from >= 0; from -= step) {
            struct exact_sum part;
            int64_t count = n - from < step ? n - from : step;
            exact_sum_init(&part);
            exact_sum_add(&part, dtype, values + (size_t)from * bytes_each, count);
            exact_sum_merge(&sum, &part);
        }
        assert_bits(exact_sum_round(&sum), expected);
    }
    shifted = malloc((size_t)n * bytes_each + 1);
    assert_non_null(shifted);
    memcpy(shifted + 1, values, (size_t)n * bytes_each);
    assert_bits(f64_from_bits(sum_bits(dtype, shifted + 1, n)), expected);
    free(shifted);
}

static void test_any_order(void **state)
{
    enum { N = 5000 };
    static float narrow[N];
    static double wide[N];
    static uint16_t half[N];
    static int64_t integers[N];

    (void)state;
    for (uint64_t i = 0; i < N; i++) {
        narrow[i] = philox_wide_f32(1, 2, i);
        wide[i] = philox_wide_f64(1, 2, i) * (i % 3 ? 0x1p-1060 : 0x1p900);
        half[i] = (uint16_t)(philox_u32(1, 2, i) & 0xbbff); /* finite as f16 and bf16 */
        integers[i] = (int64_t)philox_u64(1, 2, i);
    }
    check_order(DTYPE_FLOAT32, 4, (const unsigned char *)narrow, N);
    check_order(DTYPE_FLOAT64, 8, (const unsigned char *)wide, N);
    check_order(DTYPE_FLOAT16, 2, (const unsigned char *)half, N);
    check_order(DTYPE_BFLOAT16, 2, (const unsigned char *)half, N);
    check_order(DTYPE_INT64, 8, (const unsigned char *)integers, N);
    check_order(DTYPE_INT32, 4, (const unsigned char *)integers, 2 * N);
    check_order(DTYPE_UINT8, 1, (const unsigned char *)integers, 8 * N);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zeros),
        cmocka_unit_test(test_merged_zeros),
        cmocka_unit_test(test_nan_and_infinity),
        cmocka_unit_test(test_specials_merge),
        cmocka_unit_test(test_nan_merges),
        cmocka_unit_test(test_many_elements),
        cmocka_unit_test(test_what_breaks_a_tie),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_full_bins),
        cmocka_unit_test(test_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
