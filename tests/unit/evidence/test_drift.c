/* What happened to a case between two environments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/array.h"
#include "daemon/base/mem.h"
#include "daemon/evidence/drift.h"

/* A side in a few words: RUNS with DISTINCT digests, the first of which is DIGEST. */
static struct drift_side side(enum verdict verdict, int runs, int distinct, int digest)
{
    struct drift_side s = { .cell = 1,
                            .verdict = verdict,
                            .runs = runs,
                            .distinct_digests = distinct,
                            .compared_runs = distinct == 1 ? runs : 0,
                            .devices = 1,
                            .reach = DRIFT_RUNNABLE };

    if (distinct == 1) {
        snprintf(s.digest, sizeof s.digest, "%032x", digest);
    }
    snprintf(s.algorithm, sizeof s.algorithm, "tree");
    s.algorithms = 1;
    return s;
}

static struct drift_side nothing(enum drift_reach reach)
{
    return (struct drift_side){ .verdict = VERDICT_UNMEASURED, .reach = reach };
}

#define GREEN(digest) side(VERDICT_REPRODUCIBLE, 5, 1, digest)
#define OPEN(digest)  side(VERDICT_INCONCLUSIVE, 5, 1, digest)
#define ONCE(digest)  side(VERDICT_INCONCLUSIVE, 1, 1, digest)
#define VARYING       side(VERDICT_VARIES, 5, 3, 0)
#define BROKEN        side(VERDICT_FAILING, 0, 0, 0)
#define WRONG         side(VERDICT_FAILING, 5, 1, 7)
#define LOST          side(VERDICT_UNMEASURED, 0, 0, 0)
#define UNSUPPORTED   side(VERDICT_UNSUPPORTED, 0, 0, 0)

static struct drift_case judged(struct drift_side from, struct drift_side to)
{
    struct drift_case c = { .from = from, .to = to };

    snprintf(c.key.workload, sizeof c.key.workload, "conv_wgrad");
    snprintf(c.key.variant, sizeof c.key.variant, "ordered");
    drift_judge(&c);
    return c;
}

static void test_kinds(void **state)
{
    const struct {
        struct drift_side from, to;
        enum drift_kind kind;
        int bits; /* 1: same, 0: changed, -1: not told */
    } table[] = {
        { GREEN(7), GREEN(7), DRIFT_SAME, 1 },
        { GREEN(7), GREEN(8), DRIFT_BITS, 0 },
        { OPEN(7), OPEN(7), DRIFT_SAME, 1 },
        { OPEN(7), OPEN(8), DRIFT_BITS, 0 },
        { OPEN(7), GREEN(7), DRIFT_VERDICT, 1 },
        { GREEN(7), OPEN(7), DRIFT_VERDICT, 1 },
        { GREEN(7), VARYING, DRIFT_VARIES_NOW, -1 },
        { OPEN(7), VARYING, DRIFT_VARIES_NOW, -1 },
        { GREEN(7), side(VERDICT_DEVICES_DISAGREE, 5, 2, 0), DRIFT_DISAGREE_NOW, -1 },
        { GREEN(7), side(VERDICT_INCONCLUSIVE, 5, 2, 0), DRIFT_UNKNOWN, -1 },
        { VARYING, GREEN(7), DRIFT_VERDICT, -1 },
        { VARYING, VARYING, DRIFT_VARIES, -1 },
        /* One process says of no case that its digest repeats. */
        { ONCE(7), GREEN(7), DRIFT_UNKNOWN, -1 },
        { GREEN(7), ONCE(7), DRIFT_UNKNOWN, -1 },
        { GREEN(7), ONCE(8), DRIFT_UNKNOWN, -1 },
        { ONCE(7), VARYING, DRIFT_UNKNOWN, -1 },
        { VARYING, ONCE(7), DRIFT_UNKNOWN, -1 },
        { GREEN(7), BROKEN, DRIFT_FAILS_NOW, -1 },
        { GREEN(7), WRONG, DRIFT_FAILS_NOW, -1 },
        { VARYING, UNSUPPORTED, DRIFT_FAILS_NOW, -1 },
        { BROKEN, GREEN(7), DRIFT_VERDICT, -1 },
        { WRONG, WRONG, DRIFT_NEITHER, -1 },
        { UNSUPPORTED, BROKEN, DRIFT_NEITHER, -1 },
        { GREEN(7), nothing(DRIFT_RUNNABLE), DRIFT_UNKNOWN, -1 },
        { GREEN(7), nothing(DRIFT_NO_DEVICE), DRIFT_UNKNOWN, -1 },
        { GREEN(7), nothing(DRIFT_NO_CASE), DRIFT_DISAPPEARED, -1 },
        { nothing(DRIFT_RUNNABLE), GREEN(7), DRIFT_UNKNOWN, -1 },
        { nothing(DRIFT_NO_DEVICE), GREEN(7), DRIFT_APPEARED, -1 },
        { nothing(DRIFT_NO_CASE), VARYING, DRIFT_APPEARED, -1 },
        { nothing(DRIFT_NO_DEVICE), WRONG, DRIFT_APPEARED, -1 },
        { BROKEN, nothing(DRIFT_RUNNABLE), DRIFT_UNKNOWN, -1 },
        { BROKEN, nothing(DRIFT_NO_CASE), DRIFT_DISAPPEARED, -1 },
        { LOST, BROKEN, DRIFT_UNKNOWN, -1 },
        { LOST, GREEN(7), DRIFT_UNKNOWN, -1 },
        { BROKEN, LOST, DRIFT_UNKNOWN, -1 },
        { GREEN(7), LOST, DRIFT_UNKNOWN, -1 },
        { side(VERDICT_VARIES, 1, 2, 0), VARYING, DRIFT_VARIES, -1 },
        { VARYING, side(VERDICT_VARIES, 1, 2, 0), DRIFT_VARIES, -1 },
        { side(VERDICT_VARIES, 1, 2, 0), ONCE(7), DRIFT_UNKNOWN, -1 },
        { VARYING, side(VERDICT_INCONCLUSIVE, 5, 2, 0), DRIFT_VERDICT, -1 },
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(table); i++) {
        struct drift_case c = judged(table[i].from, table[i].to);
        int bits = !c.bits_told ? -1 : c.bits_same;

        if (c.kind != table[i].kind || bits != table[i].bits || !c.reason[0]) {
            fail_msg("%d: %s, bits %d: %s", i, drift_kind_name(c.kind), bits, c.reason);
        }
        assert_int_equal(c.proven, c.bits_told && c.bits_same &&
                                       c.from.verdict == VERDICT_REPRODUCIBLE &&
                                       c.to.verdict == VERDICT_REPRODUCIBLE);
    }
}

static void test_contested_inputs_tell_nothing(void **state)
{
    struct drift_side from = OPEN(7);
    struct drift_side to = OPEN(8);

    (void)state;
    from.contested = to.contested = true;
    assert_int_equal(judged(from, to).kind, DRIFT_UNKNOWN);
    assert_false(judged(from, to).bits_told);
    from.contested = false;
    assert_int_equal(judged(from, to).kind, DRIFT_UNKNOWN);
}

/* No device has the environment of SIDE now. */
static struct drift_side away(struct drift_side side)
{
    side.reach = DRIFT_NO_DEVICE;
    return side;
}

static void test_damaged_rows_tell_nothing(void **state)
{
    (void)state;
    for (int which = 0; which < 2; which++) {
        struct drift_case c = { .from = GREEN(7), .to = GREEN(7) };

        (which ? &c.from : &c.to)->damaged = true;
        drift_judge(&c);
        assert_int_equal(c.kind, DRIFT_UNKNOWN);
        assert_false(c.bits_told || c.proven);
    }
}

static void test_what_to_run(void **state)
{
    const struct {
        struct drift_side from, to;
        bool lacks_from, lacks_to;
    } table[] = {
        { GREEN(7), nothing(DRIFT_RUNNABLE), false, true },
        { GREEN(7), nothing(DRIFT_NO_DEVICE), false, false },
        { nothing(DRIFT_RUNNABLE), GREEN(7), true, false },
        { ONCE(7), ONCE(7), true, true },
        { GREEN(7), ONCE(7), false, true },
        { ONCE(7), VARYING, true, false },
        { GREEN(7), GREEN(8), false, false },
        { BROKEN, nothing(DRIFT_RUNNABLE), false, true },
        { away(LOST), GREEN(7), false, false },
        { away(ONCE(7)), GREEN(7), false, false },
        { GREEN(7), away(ONCE(7)), false, false },
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(table); i++) {
        struct drift_case c = judged(table[i].from, table[i].to);

        assert_int_equal(c.lacks_from, table[i].lacks_from);
        assert_int_equal(c.lacks_to, table[i].lacks_to);
    }
}

static void test_algorithms(void **state)
{
    struct drift_side from = GREEN(7);
    struct drift_side to = GREEN(7);

    (void)state;
    snprintf(to.algorithm, sizeof to.algorithm, "ring");
    assert_int_equal(judged(from, to).kind, DRIFT_ALGORITHM);
    assert_true(judged(from, to).bits_same);
    to = GREEN(8);
    snprintf(to.algorithm, sizeof to.algorithm, "ring");
    assert_int_equal(judged(from, to).kind, DRIFT_BITS);
    assert_true(judged(from, to).algorithm_changed);
    from = to = VARYING;
    snprintf(to.algorithm, sizeof to.algorithm, "ring");
    assert_int_equal(judged(from, to).kind, DRIFT_ALGORITHM);
    assert_false(judged(from, to).bits_told);
    from = GREEN(7);
    to = GREEN(7);
    snprintf(to.algorithm, sizeof to.algorithm, "ring");
    to.algorithms = 3; /* one is chosen in each run */
    assert_false(judged(from, to).algorithm_changed);
    to.algorithms = 0; /* it did not say */
    assert_false(judged(from, to).algorithm_changed);
}

static void test_a_control_that_varies_is_as_it_should_be(void **state)
{
    struct drift_case c = { .from = OPEN(7), .to = VARYING, .is_control = true };

    (void)state;
    drift_judge(&c);
    assert_int_equal(c.kind, DRIFT_VERDICT);
    assert_false(c.bits_told);
}

static struct drift_case timed(int64_t before, int64_t after, double shift)
{
    struct drift_case c = { .from = GREEN(7), .to = GREEN(7), .shift = shift };

    c.from.times = (struct quartiles){ 5, before - 1, before, before + 1 };
    c.to.times = (struct quartiles){ 5, after - 1, after, after + 1 };
    drift_judge(&c);
    return c;
}

static void test_cost_beyond_noise_alone(void **state)
{
    struct drift_case c = timed(1000, 1500, 2.61);

    (void)state;
    assert_int_equal(c.kind, DRIFT_COST);
    assert_true(c.cost_changed && c.cost.median == 1.5);
    assert_int_equal(timed(1500, 1000, -2.61).kind, DRIFT_COST);
    assert_int_equal(timed(1000, 1500, 2.5).kind, DRIFT_SAME);  /* it may be chance */
    assert_int_equal(timed(1000, 1040, 2.61).kind, DRIFT_SAME); /* too little */
    c = timed(1000, 1500, 2.61);
    c.from.distinct_digests = c.to.distinct_digests = 3; /* also of what varies */
    c.from.digest[0] = c.to.digest[0] = '\0';
    c.from.verdict = c.to.verdict = VERDICT_VARIES;
    drift_judge(&c);
    assert_int_equal(c.kind, DRIFT_COST);
    assert_false(c.bits_told);
    c = timed(1000, 1500, 2.61);
    c.least_ns = 1200; /* on a GPU: launches, and nothing of what is computed */
    drift_judge(&c);
    assert_int_equal(c.kind, DRIFT_SAME);
    assert_true(!c.cost.known && c.cost.too_short);
    c = timed(1000, 1500, 2.61);
    c.to.times.lower_ns = 900; /* the middle halves overlap */
    drift_judge(&c);
    assert_int_equal(c.kind, DRIFT_SAME);
}

static void test_order_and_headline(void **state)
{
    struct drift_case cases[] = {
        judged(GREEN(7), GREEN(7)), judged(OPEN(7), OPEN(7)),
        judged(GREEN(7), GREEN(8)), judged(GREEN(7), VARYING),
        timed(1000, 1500, 3),       judged(GREEN(7), nothing(DRIFT_RUNNABLE)),
    };
    struct drift_counts counts;
    char headline[DRIFT_HEADLINE_SIZE];

    (void)state;
    snprintf(cases[2].key.variant, sizeof cases[2].key.variant, "algo_1");
    drift_sort(cases, COUNT_OF(cases));
    for (int i = 1; i < COUNT_OF(cases); i++) {
        assert_true(cases[i - 1].kind <= cases[i].kind);
    }
    counts = drift_count(cases, COUNT_OF(cases));
    assert_int_equal(counts.same_bits, 3);
    assert_int_equal(counts.proven, 2);
    assert_int_equal(counts.dearer, 1);
    drift_headline(cases, COUNT_OF(cases), headline);
    assert_string_equal(
        headline,
        "3 cases same bits (1 of them not proven reproducible); 1 changed: "
        "conv_wgrad algo_1; 1 vary now: conv_wgrad ordered; 1 cost more "
        "(median +50 %); 1 cannot be told yet");
}

static void test_headlines(void **state)
{
    enum { MANY = 12 };
    struct drift_case cases[MANY];
    char headline[DRIFT_HEADLINE_SIZE];

    (void)state;
    drift_sort(NULL, 0);
    drift_headline(NULL, 0, headline);
    assert_string_equal(headline, "0 cases same bits");
    cases[0] = timed(1500, 1000, -3);
    cases[1] = timed(4000, 1000, -3);
    cases[2] = timed(2000, 1000, -3);
    drift_headline(cases, 1, headline);
    assert_string_equal(headline, "1 case same bits; 1 cost less (median -33 %)");
    drift_headline(cases, 3, headline);
    assert_string_equal(headline, "3 cases same bits; 3 cost less (median -50 %)");
    /* Several seeds of a case are named once, and what finds no room is counted. */
    for (int i = 0; i < MANY; i++) {
        cases[i] = judged(GREEN(7), GREEN(8));
        snprintf(cases[i].key.variant, sizeof cases[i].key.variant, "algo_%d", i / 2);
        cases[i].key.seed = (uint64_t)i;
    }
    drift_headline(cases, MANY, headline);
    assert_string_equal(headline,
                        "0 cases same bits; 12 changed: conv_wgrad algo_0, conv_wgrad "
                        "algo_1, conv_wgrad algo_2 and 3 more");
}

/* It ends where its room does. */
static void test_a_headline_is_cut(void **state)
{
    static const enum verdict to[] = { VERDICT_VARIES, VERDICT_DEVICES_DISAGREE };
    struct drift_case cases[12];
    struct {
        char text[DRIFT_HEADLINE_SIZE], behind[4096];
    } headline = { .text = "" };
    int n = 0;

    (void)state;
    for (int i = 0; i < 3; i++) {
        cases[n++] = judged(GREEN(7), GREEN(8));
        cases[n++] = judged(GREEN(7), BROKEN);
        for (int v = 0; v < COUNT_OF(to); v++) {
            cases[n++] = judged(GREEN(7), side(to[v], 5, 3, 0));
        }
    }
    for (int i = 0; i < n; i++) {
        memset(cases[i].key.workload, 'w', CASE_NAME_SIZE - 1);
        memset(cases[i].key.variant, 'a' + i, CASE_NAME_SIZE - 1);
        cases[i].key.workload[CASE_NAME_SIZE - 1] = '\0';
        cases[i].key.variant[CASE_NAME_SIZE - 1] = '\0';
    }
    drift_headline(cases, n, headline.text);
    assert_int_equal(strlen(headline.text), DRIFT_HEADLINE_SIZE - 1);
    for (size_t i = 0; i < sizeof headline.behind; i++) {
        assert_int_equal(headline.behind[i], 0);
    }
}

static void test_groups_share_what_they_name(void **state)
{
    struct drift_case a = judged(GREEN(7), GREEN(8));
    struct drift_case b = judged(GREEN(7), GREEN(8));

    (void)state;
    b.key.seed = 2;
    assert_true(drift_same_group(&a, &b));
    b.subject = SUBJECT_LIBRARY;
    assert_false(drift_same_group(&a, &b));
    assert_false(drift_same_group(&b, &a));
    b = judged(GREEN(7), VARYING);
    assert_false(drift_same_group(&a, &b));
    b = a;
    snprintf(b.to.algorithm, sizeof b.to.algorithm, "ring");
    assert_false(drift_same_group(&a, &b));
}

/* Any order of the cases gives the same one. */
static void test_sorting_is_whole(void **state)
{
    struct drift_case cases[24];
    char first[DRIFT_HEADLINE_SIZE];
    unsigned random = 1;

    (void)state;
    for (int round = 0; round < 100; round++) {
        char text[DRIFT_HEADLINE_SIZE];

        for (int i = 0; i < 24 && round == 0; i++) {
            cases[i] = judged(GREEN(7), GREEN(i % 3 ? 8 : 7));
            snprintf(cases[i].key.workload, sizeof cases[i].key.workload, "w%d", i % 5);
            cases[i].key.seed = (uint64_t)i;
        }
        for (int i = 23; i > 0; i--) {
            struct drift_case kept = cases[i];
            int other;

            random = random * 1103515245 + 12345;
            other = (int)(random >> 16) % (i + 1);
            cases[i] = cases[other];
            cases[other] = kept;
        }
        drift_sort(cases, 24);
        for (int i = 1; i < 24; i++) {
            assert_true(cases[i - 1].kind < cases[i].kind ||
                        strcmp(cases[i - 1].key.workload, cases[i].key.workload) <= 0);
        }
        drift_headline(cases, 24, text);
        if (round == 0) {
            memcpy(first, text, sizeof first);
        }
        assert_string_equal(text, first);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_contested_inputs_tell_nothing),
        cmocka_unit_test(test_damaged_rows_tell_nothing),
        cmocka_unit_test(test_what_to_run),
        cmocka_unit_test(test_algorithms),
        cmocka_unit_test(test_a_control_that_varies_is_as_it_should_be),
        cmocka_unit_test(test_cost_beyond_noise_alone),
        cmocka_unit_test(test_order_and_headline),
        cmocka_unit_test(test_headlines),
        cmocka_unit_test(test_a_headline_is_cut),
        cmocka_unit_test(test_groups_share_what_they_name),
        cmocka_unit_test(test_sorting_is_whole),
    };

    return cmocka_run_group_tests_name("drift", tests, NULL, NULL);
}
