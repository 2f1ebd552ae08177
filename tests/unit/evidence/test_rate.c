/* Rates and their intervals, against sums over all outcomes. */
#include "daemon/evidence/rate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/jobs/cell.h"

enum { MOST = 40, GRID = 400 };

/* The probability of K of N. */
static double exactly(int k, int n, double p)
{
    double product = 1;

    for (int i = 0; i < k; i++) {
        product *= p * (n - i) / (i + 1);
    }
    return product * pow(1 - p, n - k);
}

/* Of FIRST to LAST of N. */
static double between(int first, int last, int n, double p)
{
    double sum = 0;

    for (int k = first; k <= last; k++) {
        sum += exactly(k, n, p);
    }
    return sum;
}

static void test_ends_are_where_the_tails_are(void **state)
{
    (void)state;
    for (int n = 1; n <= MOST; n++) {
        for (int k = 0; k <= n; k++) {
            struct rate rate = rate_of(k, n);

            assert_int_equal(rate.k, k);
            assert_int_equal(rate.n, n);
            if (k > 0) {
                assert_true(fabs(between(k, n, n, rate.lower) - 0.025) < 1e-9);
            } else {
                assert_true(rate.lower == 0);
            }
            if (k < n) {
                assert_true(fabs(between(0, k, n, rate.upper) - 0.025) < 1e-9);
            } else {
                assert_true(rate.upper == 1);
            }
        }
    }
}

/* Whatever the probability is, the outcomes whose interval has it add up to 95 %. */
static void test_intervals_cover(void **state)
{
    static const int counts[] = { 1, 2, 5, 12, MOST };

    (void)state;
    for (int c = 0; c < (int)(sizeof counts / sizeof *counts); c++) {
        int n = counts[c];

        for (int g = 1; g < GRID; g++) {
            double p = (double)g / GRID, covered = 0;

            for (int k = 0; k <= n; k++) {
                struct rate rate = rate_of(k, n);

                covered += rate.lower <= p && p <= rate.upper ? exactly(k, n, p) : 0;
            }
            assert_true(covered >= 0.95);
        }
    }
}

static void test_known_ends(void **state)
{
    struct rate none = rate_of(0, 100), all = rate_of(100, 100), empty = rate_of(0, 0);
    struct rate rare = rate_of(1, 10);

    (void)state;
    assert_true(fabs(none.upper - (1 - pow(0.025, 0.01))) < 1e-12);
    assert_true(fabs(all.lower - pow(0.025, 0.01)) < 1e-12);
    assert_true(empty.lower == 0 && empty.upper == 1);
    assert_true(fabs(rare.lower - 0.0025) < 1e-4 && fabs(rare.upper - 0.4450) < 1e-4);
}

/* Millions of iterations: the tails as sums of logarithms. */
static void test_many(void **state)
{
    const int64_t n = 5000000, k = 500;
    struct rate rate = rate_of(k, n);
    double tail = 0;

    (void)state;
    for (int64_t i = 0; i <= k; i++) {
        tail += exp(lgamma((double)n + 1) - lgamma((double)i + 1) -
                    lgamma((double)(n - i) + 1) + (double)i * log(rate.upper) +
                    (double)(n - i) * log1p(-rate.upper));
    }
    assert_true(fabs(tail - 0.025) < 1e-6);
    assert_true(rate.lower > 0.000091 && rate.lower < 0.0001 && rate.upper > 0.0001);
    rate = rate_of(n / 2, n);
    assert_true(rate.lower < 0.5 && rate.lower > 0.4995 && rate.upper < 0.5005);
}

static struct cell varying(int64_t runs, int64_t iterations, struct digest_counts own)
{
    struct cell cell = { .evidence = { .iterations = iterations, .varied = true },
                         .digest_counts = own };

    cell.evidence.runs[OUTCOME_COMPLETED] = runs;
    return cell;
}

/* Every cell of three runs of three iterations, each of which gives one of two digests:
 * counted one by one. */
static void test_departures_are_those_of_all_iterations(void **state)
{
    enum { RUNS = 3, EACH = 3, ALL = RUNS * EACH };

    (void)state;
    for (int bits = 0; bits < 1 << ALL; bits++) {
        struct digest_counts own = { 0 };
        struct departures departures;
        struct cell cell;
        int64_t later = 0, runs = 0;

        for (int run = 0; run < RUNS; run++) {
            int shown = bits >> run * EACH & ((1 << EACH) - 1);
            int ones = __builtin_popcount((unsigned)shown);

            own.runs += ones < EACH;
            own.iterations += EACH - ones;
            own.first_runs += !(shown & 1);
            own.only_runs += ones == 0;
            later += __builtin_popcount((unsigned)shown >> 1);
            runs += ones > 0;
        }
        cell = varying(RUNS, ALL, own);
        assert_int_equal(departures_of(&cell, &departures), own.runs > 0);
        if (own.runs > 0) {
            /* Where it may not be the most frequent of the later ones, none is told. */
            bool most = 2 * later < ALL - RUNS;

            assert_int_equal(departures.iterations.k, most ? later : 0);
            assert_int_equal(departures.iterations.n, most ? ALL - RUNS : 0);
            assert_int_equal(departures.runs.k, runs);
            assert_int_equal(departures.runs.n, RUNS);
        }
    }
}

/* The first iteration of each run gives one digest, the later ones give others: which of
 * these is the rare one is not known from the first. */
static void test_the_most_frequent_may_be_another_later(void **state)
{
    struct cell warm = varying(10, 100, (struct digest_counts){ 10, 10, 10, 0 });
    struct cell race = varying(3, 30, (struct digest_counts){ 1, 1, 1, 0 });
    struct departures departures;
    char text[DEPARTURES_TEXT_SIZE];

    (void)state;
    warm.evidence.distinct_digests = 3;
    assert_true(departures_of(&warm, &departures));
    assert_int_equal(departures.runs.k, 10);
    assert_int_equal(departures.iterations.n, 0);
    departures_text(&departures, text);
    assert_string_equal(
        text, "another digest than the most frequent one in 10 of 10 runs (69-100 %)");
    race.evidence.distinct_digests = 30;
    assert_true(departures_of(&race, &departures));
    assert_int_equal(departures.iterations.k, 27);
    assert_int_equal(departures.iterations.n, 27);
}

static void test_only_what_varies_among_like_runs_departs(void **state)
{
    struct cell cell = varying(2, 20, (struct digest_counts){ 1, 10, 1, 1 });
    struct departures departures;

    (void)state;
    assert_true(departures_of(&cell, &departures));
    cell.evidence.varied = false;
    assert_false(departures_of(&cell, &departures));
}

static void test_counts_that_contradict_say_nothing(void **state)
{
    static const struct digest_counts damaged[] = {
        { 0, 0, 0, 0 },   { 1, 10, 1, 3 }, { 1, 10, 1, -1 },
        { 1, 10, 11, 1 }, { 1, 20, 1, 1 },
    };
    struct departures departures;

    (void)state;
    for (int i = 0; i < (int)(sizeof damaged / sizeof *damaged); i++) {
        struct cell cell = varying(2, 20, damaged[i]);

        assert_false(departures_of(&cell, &departures));
    }
}

static void assert_text(struct cell cell, const char *expected)
{
    char text[DEPARTURES_TEXT_SIZE];
    struct departures departures;

    assert_true(departures_of(&cell, &departures));
    departures_text(&departures, text);
    assert_string_equal(text, expected);
}

static void test_text(void **state)
{
    (void)state;
    assert_text(
        varying(50, 4550, (struct digest_counts){ 50, 4513, 50, 38 }),
        "another digest than the most frequent one in 12 of 50 runs (13-39 %) and "
        "in 37 of 4,500 iterations after a run's first (0.57-1.2 % if "
        "independent)");
    assert_text(varying(2, 2, (struct digest_counts){ 1, 1, 1, 1 }),
                "another digest than the most frequent one in 1 of 2 runs (1.2-99 %)");
    assert_text(
        varying(1000, 2000000, (struct digest_counts){ 1000, 1999999, 1000, 999 }),
        "another digest than the most frequent one in 1 of 1,000 runs (0.0025-0.56 %) "
        "and in 1 of 1,999,000 iterations after a run's first (0.0000012-0.00028 % if "
        "independent)");
}

/* What never happened is at 0 %, and not at some small share. */
static void test_text_of_ends(void **state)
{
    struct rate never = rate_of(0, 10), always = rate_of(10, 10);
    char text[TEXT_NUMBER_SIZE];

    (void)state;
    assert_string_equal(rate_interval_text(&never, text), "0-31 %");
    assert_string_equal(rate_interval_text(&always, text), "69-100 %");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends_are_where_the_tails_are),
        cmocka_unit_test(test_intervals_cover),
        cmocka_unit_test(test_known_ends),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_departures_are_those_of_all_iterations),
        cmocka_unit_test(test_the_most_frequent_may_be_another_later),
        cmocka_unit_test(test_only_what_varies_among_like_runs_departs),
        cmocka_unit_test(test_counts_that_contradict_say_nothing),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_text_of_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
