/* Times of runs: buckets, quartiles and costs. */
#include "daemon/evidence/times.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_buckets_rise_and_are_narrow(void **state)
{
    int previous = -1;

    (void)state;
    for (int64_t ns = 1; ns < INT64_C(1) << 58; ns += 1 + ns / 97) {
        int bucket = times_bucket(ns);
        int64_t off = times_middle(bucket) - ns;

        assert_true(bucket >= previous && bucket < TIMES_BUCKETS);
        assert_true(ns < 64 ? off == 0 || off == -1 || off == 1
                            : (off < 0 ? -off : off) <= ns / 64 + 1);
        assert_int_equal(times_bucket(ns), bucket);
        previous = bucket;
    }
    for (int power = 58; power < 63; power++) {
        assert_int_equal(times_bucket(INT64_C(1) << power), TIMES_BUCKETS - 1);
    }
    assert_int_equal(times_bucket(INT64_MAX), TIMES_BUCKETS - 1);
    assert_int_equal(times_bucket(0), times_bucket(1));
    assert_true(times_middle(0) >= 1);
    assert_true(times_middle(TIMES_BUCKETS - 1) > INT64_C(1) << 57);
}

/* The bounds of a bucket lie in it and their neighbours do not. */
static void test_bounds(void **state)
{
    (void)state;
    for (int power = 6; power < 58; power++) {
        for (int part = 0; part < TIMES_PARTS; part++) {
            int bucket = power * TIMES_PARTS + part;
            int64_t least = (INT64_C(1) << (power - 5)) * (TIMES_PARTS + part);

            assert_int_equal(times_bucket(least), bucket);
            assert_int_equal(times_bucket(least - 1), bucket - 1);
            assert_int_equal(times_bucket(times_middle(bucket)), bucket);
        }
    }
}

static struct quartiles of(const int64_t *ns, int count)
{
    static int64_t counts[TIMES_BUCKETS];

    memset(counts, 0, sizeof counts);
    for (int i = 0; i < count; i++) {
        counts[times_bucket(ns[i])]++;
    }
    return times_quartiles(counts);
}

/* Powers of two, so that the buckets are known. */
static void test_quartiles_are_nearest_ranks(void **state)
{
    static const int64_t ns[] = { 1 << 20, 1 << 22, 1 << 21, 1 << 23,
                                  1 << 24, 1 << 26, 1 << 25 };
    static int64_t first_and_last[TIMES_BUCKETS];
    struct quartiles q = of(ns, 7);

    (void)state;
    assert_int_equal(q.runs, 7);
    assert_int_equal(q.lower_ns, times_middle(times_bucket(1 << 21)));
    assert_int_equal(q.median_ns, times_middle(times_bucket(1 << 23)));
    assert_int_equal(q.upper_ns, times_middle(times_bucket(1 << 25)));
    q = of(ns, 4);
    assert_int_equal(q.lower_ns, times_middle(times_bucket(1 << 20)));
    assert_int_equal(q.median_ns, times_middle(times_bucket(1 << 21)));
    assert_int_equal(q.upper_ns, times_middle(times_bucket(1 << 22)));
    q = of(ns, 1);
    assert_int_equal(q.lower_ns, q.upper_ns);
    memset(first_and_last, 0, sizeof first_and_last);
    first_and_last[0] = 1;
    first_and_last[TIMES_BUCKETS - 1] = 1;
    q = times_quartiles(first_and_last);
    assert_int_equal(q.runs, 2);
    assert_int_equal(q.lower_ns, times_middle(0));
    assert_int_equal(q.median_ns, times_middle(0));
    assert_int_equal(q.upper_ns, times_middle(TIMES_BUCKETS - 1));
    assert_int_equal(of(ns, 0).runs, 0);
    assert_int_equal(of(ns, 0).median_ns, 0);
}

static void test_cost(void **state)
{
    struct quartiles base = { 3, 80, 100, 200 };
    struct quartiles subject = { 3, 150, 160, 240 };
    struct cost cost = times_cost(&subject, &base, 0);

    (void)state;
    assert_true(cost.known);
    assert_true(cost.median == 1.6 && cost.low == 0.75 && cost.high == 3);
    base.runs = 2;
    assert_false(times_cost(&subject, &base, 0).known);
    base.runs = 3;
    subject.runs = 2;
    assert_false(times_cost(&subject, &base, 0).known);
}

/* On a GPU, of what takes a millisecond: below it is a ratio of launches. */
static void test_a_cost_that_is_too_short(void **state)
{
    int64_t least = times_least("{\"backend\":\"cuda\"}");
    struct quartiles shorter = { 3, 900000, 999999, 2000000 };
    struct quartiles longer = { 3, 900000, 1000000, 2000000 };
    struct quartiles few = { 2, 900000, 999999, 2000000 };
    struct cost cost = times_cost(&shorter, &longer, least);

    (void)state;
    assert_int_equal(least, 1000000);
    assert_int_equal(times_least("{\"backend\":\"cpu\"}"), 0);
    assert_int_equal(times_least("{}"), 0);
    assert_int_equal(times_least(NULL), 0);
    assert_true(cost.too_short && !cost.known && cost.median == 0);
    cost = times_cost(&longer, &shorter, least);
    assert_true(cost.too_short && !cost.known);
    cost = times_cost(&longer, &longer, least);
    assert_true(!cost.too_short && cost.known && cost.median == 1);
    cost = times_cost(&few, &longer, least);
    assert_true(!cost.too_short && !cost.known);
    assert_true(times_cost(&shorter, &longer, 0).known);
}

/* Against the statistic by its definition, over all pairs. */
static void test_shift(void **state)
{
    static const int64_t low[] = { 1000, 1100, 1200, 1300, 1400 };
    static const int64_t high[] = { 2000, 2100, 2200, 2300, 2400 };
    static const int64_t mixed[] = { 1000, 2000, 1000, 2000, 1000 };
    int64_t a[TIMES_BUCKETS] = { 0 };
    int64_t b[TIMES_BUCKETS] = { 0 };
    int64_t c[TIMES_BUCKETS] = { 0 };

    (void)state;
    for (int i = 0; i < 5; i++) {
        a[times_bucket(low[i])]++;
        b[times_bucket(high[i])]++;
        c[times_bucket(mixed[i])]++;
    }
    /* 25 of 25 pairs: (25 - 12.5) / sqrt(25 * 11 / 12). */
    assert_true(fabs(times_shift(b, a) - 2.6112) < 1e-4);
    assert_true(fabs(times_shift(a, b) + 2.6112) < 1e-4);
    /* Three runs tie with one, two are above all: 3 / 2 + 2 * 5 of 25 pairs.  Of the ten
     * runs four are equal, and two others. */
    assert_true(fabs(times_shift(c, a) -
                     (11.5 - 12.5) / sqrt(25.0 / 12 * (11 - (60.0 + 6.0) / 90))) < 1e-9);
    assert_true(times_shift(a, a) == 0);
    memset(c, 0, sizeof c);
    c[times_bucket(low[0])] = 9; /* all the same: nothing to order by */
    assert_true(times_shift(c, c) == 0);
    a[times_bucket(low[0])]--;
    assert_true(times_shift(b, a) == 0); /* four are too few */
    assert_true(times_shift(a, b) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets_rise_and_are_narrow), cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_quartiles_are_nearest_ranks), cmocka_unit_test(test_cost),
        cmocka_unit_test(test_a_cost_that_is_too_short),    cmocka_unit_test(test_shift),
    };

    return cmocka_run_group_tests_name("times", tests, NULL, NULL);
}
