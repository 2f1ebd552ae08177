/* The bound of what so many equal runs leave open: exact, held in every world, and quoted
 * as it is. */
#include "tests/unit/evidence/verdict_fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/text.h"

static void test_bound_is_the_exact_binomial_one(void **state)
{
    (void)state;
    assert_true(verdict_difference_bound(0) == 1.0);
    assert_true(verdict_difference_bound(1) == 1.0);
    assert_true(fabs(verdict_difference_bound(2) - 0.95) < 1e-12);
    assert_true(fabs(verdict_difference_bound(5) - 0.5271292) < 1e-6);
    assert_true(fabs(verdict_difference_bound(50) - 0.0593060) < 1e-6);
    for (int64_t n = 2; n < 1000000; n *= 3) {
        assert_true(fabs(pow(1 - verdict_difference_bound(n), (double)(n - 1)) - 0.05) <
                    1e-6);
    }
}

enum { DIGESTS = 3, PARTS = 24, RUNS_MAX = 6 };

/* How probable it is, with digests of probability PARTS_OF[d] / PARTS, that RUNS runs are
 * equal and that a run differs from the first with a probability of BOUND or more: every
 * sequence of digests is looked at. */
static double false_claims(const int parts_of[DIGESTS], int runs, double bound)
{
    double sum = 0;
    int sequences = 1;

    for (int i = 0; i < runs; i++) {
        sequences *= DIGESTS;
    }
    for (int sequence = 0; sequence < sequences; sequence++) {
        double probability = 1;
        bool equal = true;
        int rest = sequence;

        for (int i = 0; i < runs; i++, rest /= DIGESTS) {
            probability *= parts_of[rest % DIGESTS] / (double)PARTS;
            equal &= rest % DIGESTS == sequence % DIGESTS;
        }
        if (equal && 1 - parts_of[sequence % DIGESTS] / (double)PARTS >= bound) {
            sum += probability;
        }
    }
    return sum;
}

/* The greatest probability of a false claim, over all ways to part the probability. */
static double most_false_claims(int runs, double bound)
{
    double most = 0;

    for (int a = 0; a <= PARTS; a++) {
        for (int b = 0; a + b <= PARTS; b++) {
            int parts_of[DIGESTS] = { a, b, PARTS - a - b };
            double now = false_claims(parts_of, runs, bound);

            most = now > most ? now : most;
        }
    }
    return most;
}

static void test_bound_holds_in_every_world(void **state)
{
    int too_often = 0;

    (void)state;
    for (int runs = 2; runs <= RUNS_MAX; runs++) {
        double bound = verdict_difference_bound(runs);

        assert_true(most_false_claims(runs, bound) <= 0.05 + 1e-12);
        assert_true(most_false_claims(runs, 0.75 * bound) > 0.05); /* it is not idle */
        too_often += most_false_claims(runs, verdict_difference_bound(runs + 1)) > 0.05;
    }
    assert_true(too_often > 0); /* n comparisons would promise too much */
}

/* What is stored as a reason says the bound of these runs and of no others. */
static void test_reasons_quote_the_bound(void **state)
{
    (void)state;
    for (int64_t runs = VERDICT_MIN_RUNS; runs < 100; runs++) {
        struct evidence e = completed(runs, 1);
        struct judgement j = verdict_judge(&e, &control_varied);
        char number[TEXT_NUMBER_SIZE];
        char part[64];

        snprintf(part, sizeof part, "in %d runs / %d iterations on 1 device;", (int)runs,
                 (int)runs * 10);
        assert_non_null(strstr(j.reason, part));
        snprintf(part, sizeof part, "per-run difference probability %s (95 %%)",
                 text_bound(verdict_difference_bound(runs), number));
        if (!strstr(j.reason, part)) {
            fail_msg("\"%s\" lacks \"%s\"", j.reason, part);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound_is_the_exact_binomial_one),
        cmocka_unit_test(test_bound_holds_in_every_world),
        cmocka_unit_test(test_reasons_quote_the_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
