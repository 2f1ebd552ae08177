/* --check finds a device whose digest or exact sum is not that of the data. */
#include "workloads/worker/check_instruments.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

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
        cmocka_unit_test(test_agree),
        cmocka_unit_test(test_one_bit_off),
        cmocka_unit_test(test_sums_are_compared_by_their_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
