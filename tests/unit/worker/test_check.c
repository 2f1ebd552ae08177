/* --check passes what is within its bound, and nothing else; it finds a device whose
 * digest or exact sum is not that of the data. */
#include "workloads/worker/check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "workloads/instruments/half.h"

static int64_t failures(double got, double expected, double bound)
{
    struct deviation worst = check_compare(DTYPE_FLOAT64, &got, 1, &expected, &bound);
    assert_true((worst.failed == 0) == (worst.ratio <= 1));
    return worst.failed;
}

static void test_bounds(void **state)
{
    (void)state;
    assert_int_equal(failures(1, 1, 0), 0);
    assert_int_equal(failures(-0.0, 0, 0), 0);
    assert_int_equal(failures(1.5, 1, 0.5), 0);
    assert_int_equal(failures(1.5, 1, nextafter(0.5, 0)), 1);
    assert_int_equal(failures(1, nextafter(1, 2), 0), 1);
    assert_int_equal(failures(0x1p-1074, 0, 0), 1);
    assert_int_equal(failures(INFINITY, INFINITY, 0), 1);
    assert_int_equal(failures(-INFINITY, -INFINITY, 1e300), 1);
    assert_int_equal(failures(INFINITY, 1, 1e300), 1);
    assert_int_equal(failures(INFINITY, -INFINITY, 1), 1);
    assert_int_equal(failures(1, INFINITY, 1), 1);
}

static void test_nan_never_passes(void **state)
{
    (void)state;
    assert_int_equal(failures(NAN, 1, 1), 1);
    assert_int_equal(failures(1, NAN, 1), 1);
    assert_int_equal(failures(NAN, NAN, 1), 1);
    assert_int_equal(failures(1, 1, NAN), 1);
    assert_int_equal(failures(1, 2, INFINITY), 1);
    assert_int_equal(failures(1, 1, -1), 1);
}

static void test_names_the_worst_element(void **state)
{
    const float got[] = { 1, 2.5f, 3, 5 };
    const double expected[] = { 1, 2, 3, 4 };
    const double bound[] = { 0, 1, 0, 4 };
    struct deviation worst;

    (void)state;
    worst = check_compare(DTYPE_FLOAT32, got, 4, expected, bound);
    assert_int_equal(worst.index, 1);
    assert_true(worst.ratio == 0.5 && worst.got == 2.5 && worst.expected == 2);
    assert_int_equal(worst.failed, 0);
}

static void test_a_single_nan_among_many_fails(void **state)
{
    enum { COUNT = 1000 };
    float got[COUNT];
    double expected[COUNT], bound[COUNT];
    struct deviation worst;

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        got[i] = 1;
        expected[i] = 1;
        bound[i] = 1;
    }
    got[777] = NAN;
    worst = check_compare(DTYPE_FLOAT32, got, COUNT, expected, bound);
    assert_int_equal(worst.failed, 1);
    assert_int_equal(worst.index, 777);
}

static void test_dtypes(void **state)
{
    double expected, bound;
    const float f32 = 3;
    const double f64 = 3;
    uint16_t f16, bf16;
    const int32_t i32 = 3;
    const int64_t i64 = 3;
    const uint8_t u8 = 3;
    const void *const values[DTYPE_COUNT] = {
        [DTYPE_FLOAT32] = &f32, [DTYPE_FLOAT64] = &f64,   [DTYPE_FLOAT16] = &f16,
        [DTYPE_INT32] = &i32,   [DTYPE_BFLOAT16] = &bf16, [DTYPE_INT64] = &i64,
        [DTYPE_UINT8] = &u8,
    };

    (void)state;
    expected = 3;
    bound = 0;
    f16 = f16_from_f32(3);
    bf16 = bf16_from_f32(3);
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        assert_int_equal(check_compare(dtype, values[dtype], 1, &expected, &bound).failed,
                         0);
    }
}

static const float values[] = { 1, 0x1p-30f, -0.0f };
static struct digest device_digest;
static double device_sum;

static struct digest say_digest(struct run *run, const struct tensor *tensor)
{
    (void)run;
    (void)tensor;
    return device_digest;
}

static double say_sum(struct run *run, const struct tensor *tensor)
{
    (void)run;
    (void)tensor;
    return device_sum;
}

/* Whether a device that says this of `values` agrees with the host. */
static bool agrees(struct digest digest, double sum)
{
    static const struct backend backend = { .digest = say_digest, .exact_sum = say_sum };
    struct tensor tensor = {
        .name = "y", .dtype = DTYPE_FLOAT32, .rank = 1, .shape = { 3 }
    };
    struct run run = { .backend = &backend };
    device_digest = digest;
    device_sum = sum;
    return reading_equal(reading_of_device(&run, &tensor),
                         reading_of_copy(&tensor, values));
}

static struct digest right(void)
{
    int64_t shape[] = { 3 };
    return digest_tensor(values, DTYPE_FLOAT32, sizeof(float), 1, shape, 1);
}

static void test_agree(void **state)
{
    (void)state;
    assert_true(agrees(right(), 1 + 0x1p-30));
}

static void test_one_bit_off(void **state)
{
    struct digest wrong = right();
    (void)state;
    wrong.lo ^= 1;
    assert_false(agrees(wrong, 1 + 0x1p-30));
    assert_false(agrees(right(), nextafter(1 + 0x1p-30, 2)));
    assert_false(agrees(right(), (float)1)); /* a sum that was rounded on the way */
}

static void test_sums_are_compared_by_their_bits(void **state)
{
    struct reading zero = { .sum = 0 }, negative_zero = { .sum = -0.0 };
    struct reading nan = { .sum = NAN };
    (void)state;
    assert_false(reading_equal(zero, negative_zero));
    assert_true(reading_equal(nan, nan));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_nan_never_passes),
        cmocka_unit_test(test_names_the_worst_element),
        cmocka_unit_test(test_a_single_nan_among_many_fails),
        cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_agree),
        cmocka_unit_test(test_one_bit_off),
        cmocka_unit_test(test_sums_are_compared_by_their_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
