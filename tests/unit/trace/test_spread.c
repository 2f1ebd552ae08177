/* How far sums lie apart: exact where that is possible, and no NaN hides it. */
#include "daemon/trace/spread.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t bits(double value)
{
    uint64_t word;

    memcpy(&word, &value, sizeof word);
    return word;
}

static struct spread of(const double *values, const int64_t *runs, int count)
{
    struct spread_value list[8];
    struct spread s;

    for (int i = 0; i < count; i++) {
        list[i] = (struct spread_value){ bits(values[i]), runs ? runs[i] : 1 };
    }
    spread_of(list, count, &s);
    return s;
}

static void test_range_and_deviation(void **state)
{
    static const double values[] = { 4, 2, 9, 5, 7 };
    static const int64_t runs[] = { 3, 1, 1, 2, 1 };
    struct spread s = of(values, runs, 5);

    (void)state;
    assert_int_equal(s.runs, 8);
    assert_int_equal(s.distinct, 5);
    assert_int_equal(s.not_finite, 0);
    assert_int_equal(s.least, bits(2));
    assert_int_equal(s.greatest, bits(9));
    assert_true(s.range == 7);
    /* 2, 4, 4, 4, 5, 5, 7, 9: the squares of the distances from 5 add up to 32. */
    assert_true(s.standard_deviation == sqrt(32.0 / 7));
    assert_int_equal(s.ulp, bits(9) - bits(2));
}

/* The textbook's mean of squares would have lost all of it. */
static void test_large_and_close(void **state)
{
    double big = 1e15, values[] = { big, big + 0.125, big + 0.25 };
    struct spread s = of(values, NULL, 3);

    (void)state;
    assert_true(s.range == 0.25);
    assert_true(s.standard_deviation == 0.125);
    assert_int_equal(s.ulp, 2);
}

static void test_one_run_and_none(void **state)
{
    static const double value[] = { -3 };
    static const int64_t two[] = { 2 };
    struct spread s = of(value, NULL, 1);

    (void)state;
    assert_int_equal(s.runs, 1);
    assert_true(isnan(s.standard_deviation));
    assert_true(s.range == 0 && s.ulp == 0);
    s = of(value, two, 1);
    assert_true(s.standard_deviation == 0);
    s = of(value, NULL, 0);
    assert_int_equal(s.runs + s.distinct + s.not_finite, 0);
    assert_true(isnan(s.standard_deviation) && s.range == 0 && s.ulp == 0);
}

static void test_what_is_not_finite_is_counted_apart(void **state)
{
    static const double values[] = { INFINITY, 1, NAN, 2, -INFINITY };
    static const int64_t runs[] = { 5, 1, 2, 1, 1 };
    struct spread s = of(values, runs, 5);

    (void)state;
    assert_int_equal(s.not_finite, 8);
    assert_int_equal(s.runs, 2);
    assert_true(s.range == 1 && s.standard_deviation == sqrt(0.5));
    s = of(values, runs, 1);
    assert_int_equal(s.not_finite, 5);
    assert_int_equal(s.runs, 0);
}

static void test_zeros_and_extremes(void **state)
{
    static const double zeros[] = { -0.0, 0.0 }, all[] = { -DBL_MAX, DBL_MAX };
    struct spread s = of(zeros, NULL, 2);

    (void)state;
    assert_int_equal(s.distinct, 2);
    assert_true(s.range == 0 && s.standard_deviation == 0 && s.ulp == 0);
    s = of(all, NULL, 2);
    assert_true(isinf(s.range));
    assert_true(isinf(s.standard_deviation)); /* the root of two times the greatest */
    assert_true(s.ulp == 2 * bits(DBL_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_range_and_deviation),
        cmocka_unit_test(test_large_and_close),
        cmocka_unit_test(test_one_run_and_none),
        cmocka_unit_test(test_what_is_not_finite_is_counted_apart),
        cmocka_unit_test(test_zeros_and_extremes),
    };

    return cmocka_run_group_tests_name("spread", tests, NULL, NULL);
}
