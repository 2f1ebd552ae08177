/* exp and log of workloads/shared/exp_log.h are those of mathematics, rounded once. */
#include "workloads/shared/exp_log.h"

#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { STEP = 40009 /* of the bit patterns that are tried: some 100 000 */ };

/* How far GOT is from WANTED, in units in the last place of WANTED. */
static double distance(float got, long double wanted)
{
    int exponent;
    double unit;

    frexp((double)wanted, &exponent);
    unit = ldexp(1, exponent - 24 < -149 ? -149 : exponent - 24);
    return fabs((double)(got - wanted) / unit);
}

static void check(float (*own)(float), long double (*exact)(long double))
{
    double most = 0;

    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += STEP) {
        float x = f32_from_bits((uint32_t)bits), got = own(x);
        long double wanted = exact(x);

        if (isnan(wanted)) {
            assert_true(isnan(got));
        } else if (isinf((float)wanted)) {
            assert_true(got == (float)wanted);
        } else {
            most = fmax(most, distance(got, wanted));
        }
    }
    assert_true(most < 0.5001);
    assert_true(most > 0.49); /* or too little was tried */
}

static void test_exp(void **state)
{
    (void)state;
    check(exp_f32, expl);
    assert_true(exp_f32(0) == 1 && exp_f32(-INFINITY) == 0);
    assert_true(exp_f32(INFINITY) == INFINITY && exp_f32(FLT_MAX) == INFINITY);
    assert_true(exp_f32(-103.0F) > 0); /* subnormal */
}

static void test_log(void **state)
{
    (void)state;
    check(log_f32, logl);
    assert_true(log_f32(1) == 0 && log_f32(0) == -INFINITY);
    assert_true(log_f32(INFINITY) == INFINITY && isnan(log_f32(-1)));
}

static void test_log1p(void **state)
{
    (void)state;
    check(log1p_f32, log1pl);
    assert_true(log1p_f32(0) == 0 && log1p_f32(-1) == -INFINITY);
    assert_true(log1p_f32(INFINITY) == INFINITY && isnan(log1p_f32(-2)));
}

/* Inputs and their bits, on whatever computes: what both backends promise each other. */
static void test_bits(void **state)
{
    (void)state;
    assert_int_equal(f32_bits(exp_f32(1)), 0x402df854);
    assert_int_equal(f32_bits(exp_f32(-0.3F)), 0x3f3da643);
    assert_int_equal(f32_bits(log_f32(10)), 0x40135d8e);
    assert_int_equal(f32_bits(log1p_f32(0.5F)), 0x3ecf991f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_log1p),
        cmocka_unit_test(test_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
