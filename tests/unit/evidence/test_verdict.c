/* Verdicts from counts: precedence, the control, and devices that disagree. */
#include "tests/unit/evidence/verdict_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum verdict judge(struct evidence e, const struct control *c)
{
    return verdict_judge(&e, c).verdict;
}

static void test_green_must_be_earned(void **state)
{
    (void)state;
    assert_int_equal(judge(completed(5, 1), &control_varied), VERDICT_REPRODUCIBLE);
    assert_int_equal(judge(completed(1, 1), &control_varied), VERDICT_INCONCLUSIVE);
    assert_int_equal(judge(completed(5, 1), &control_flat), VERDICT_INCONCLUSIVE);
    assert_int_equal(judge(completed(5, 1), &control_missing), VERDICT_INCONCLUSIVE);
    assert_int_equal(judge(completed(50, 1), &is_control), VERDICT_INCONCLUSIVE);
    assert_int_equal(judge(completed(0, 0), &control_varied), VERDICT_UNMEASURED);
}

static void test_a_library_that_warns_is_believed(void **state)
{
    struct evidence e = completed(200, 1);
    struct control none = { .no_control = "nothing races" };

    (void)state;
    e.warned = 1;
    assert_int_equal(judge(e, &control_varied), VERDICT_INCONCLUSIVE);
    assert_int_equal(judge(e, &none), VERDICT_INCONCLUSIVE);
    assert_non_null(
        strstr(verdict_judge(&e, &control_varied).reason, "calls non-deterministic"));
    e.distinct_digests = 2;
    assert_int_equal(judge(e, &control_varied), VERDICT_VARIES);
    e = completed(200, 1);
    e.claimed = 200;
    assert_int_equal(judge(e, &control_varied), VERDICT_REPRODUCIBLE);
}

static void assert_reason(const struct control *c, enum verdict verdict, const char *part)
{
    struct evidence e = completed(5, 1);
    struct judgement j = verdict_judge(&e, c);

    assert_int_equal(j.verdict, verdict);
    if (!strstr(j.reason, part)) {
        fail_msg("\"%s\" lacks \"%s\"", j.reason, part);
    }
}

static void test_a_control_counts_under_the_same_conditions(void **state)
{
    struct control c = control_varied;

    (void)state;
    c.conditions = "{\"contention\":4,\"memory-poison\":\"random\"}";
    assert_reason(&c, VERDICT_REPRODUCIBLE,
                  "; the control varied with contention 4, memory-poison random, as 5 of "
                  "these runs were asked for");
    c.own_runs = 2;
    assert_reason(&c, VERDICT_REPRODUCIBLE, "as 2 of these runs");
    c.own_runs = 1;
    assert_reason(&c, VERDICT_INCONCLUSIVE,
                  "the control varied with contention 4, memory-poison random, and this "
                  "variant completed 1 run so: at least 2 are needed");
    c.conditions = "";
    c.own_runs = 0;
    assert_reason(
        &c, VERDICT_INCONCLUSIVE,
        "the control varied in plain runs, and this variant completed 0 runs so");
    c.varied = false;
    assert_reason(&c, VERDICT_INCONCLUSIVE, "never among runs alike on one device");
}

static void assert_words(struct evidence e, const struct control *c, enum verdict verdict,
                         const char *part)
{
    struct judgement j = verdict_judge(&e, c);

    assert_int_equal(j.verdict, verdict);
    if (!strstr(j.reason, part)) {
        fail_msg("\"%s\" lacks \"%s\"", j.reason, part);
    }
}

static void test_one_digest_needs_a_check_that_passed(void **state)
{
    struct evidence e = completed(5, 1);

    (void)state;
    assert_words(e, &control_varied, VERDICT_REPRODUCIBLE,
                 "; within bound of the float64 reference");
    e.checks.passed = 0;
    assert_words(e, &control_varied, VERDICT_INCONCLUSIVE,
                 "not compared with the float64 reference, which its next run");
    e.checks.unanswered = 1;
    assert_words(e, &control_varied, VERDICT_INCONCLUSIVE, "too old to do");
    e.checks.cut_off = 1;
    assert_words(e, &control_varied, VERDICT_INCONCLUSIVE, "did not survive");
    e.checks.given_up = 1;
    assert_words(e, &control_varied, VERDICT_INCONCLUSIVE, "this host gave up");
    e.checks.passed = 1;
    assert_words(e, &control_varied, VERDICT_REPRODUCIBLE, "within bound");
}

/* A command of the configuration: of DIGESTS in five runs. */
static struct evidence of_command(int64_t digests, struct challenges challenges)
{
    struct evidence e = completed(5, digests);

    e.checks = (struct checks){ .has_reference = false };
    e.challenges = challenges;
    return e;
}

static void test_a_command_needs_a_challenge_that_passed(void **state)
{
    struct challenges c = { .passed = 0 };
    struct evidence e;

    (void)state;
    assert_words(of_command(1, c), &control_varied, VERDICT_INCONCLUSIVE,
                 "1 digest in 5 runs / 50 iterations, but not challenged: another seed "
                 "was not tried yet");
    c.failed = 7;
    assert_words(of_command(1, c), &control_varied, VERDICT_INCONCLUSIVE,
                 "another seed has no result so far");
    c.repeated = CHALLENGES_REPEATED - 1;
    assert_words(of_command(1, c), &control_varied, VERDICT_INCONCLUSIVE,
                 "another seed gave the same digest so far, which may be a coincidence");
    c.passed = 1;
    assert_words(
        of_command(1, c), &control_varied, VERDICT_REPRODUCIBLE,
        "; as declared by its command, which has no reference; another seed gave "
        "another digest");
    e = of_command(1, c);
    e.unseeded = true; /* it declares so since then */
    assert_words(e, &control_varied, VERDICT_INCONCLUSIVE,
                 "its command declares that it has no seeded inputs");
    assert_int_equal(judge(of_command(2, c), &control_varied), VERDICT_VARIES);
    assert_int_equal(judge(of_command(1, c), &control_flat), VERDICT_INCONCLUSIVE);
}

static void test_a_command_that_ignores_its_inputs_is_found(void **state)
{
    struct challenges c = { .repeated = CHALLENGES_REPEATED, .run = "01R7" };

    (void)state;
    assert_words(of_command(1, c), &control_varied, VERDICT_INCONCLUSIVE,
                 "the program answers without its inputs: with another seed, run 01R7 "
                 "gave the same digest, as did 3 of 3 such runs");
    assert_words(of_command(1, c), &control_missing, VERDICT_INCONCLUSIVE,
                 "the program answers without its inputs");
    c.passed = 1; /* by chance, once in four */
    assert_int_equal(judge(of_command(1, c), &control_varied), VERDICT_REPRODUCIBLE);
    c.repeated = 4; /* it answered the first one only */
    assert_words(of_command(1, c), &control_varied, VERDICT_INCONCLUSIVE,
                 "as did 4 of 5 such runs");
    c = (struct challenges){ .passed = 900, .unchanged = 1, .run = "01R8" };
    assert_words(of_command(1, c), &control_varied, VERDICT_INCONCLUSIVE,
                 "the program answers without its inputs: with another seed, run 01R8 "
                 "computed from the same ones");
    assert_int_equal(judge(of_command(2, c), &is_control), VERDICT_VARIES);
}

static void test_a_control_that_ignores_its_inputs_vouches_for_nothing(void **state)
{
    struct challenges passed = { .passed = 1 };
    struct evidence e = of_command(1, passed);
    struct control c = control_varied;

    (void)state;
    c.is_command = true;
    c.right = false;
    assert_words(e, &c, VERDICT_INCONCLUSIVE,
                 "the control varied, but it was not challenged: another seed was not "
                 "tried yet");
    c.challenges.failed = 2;
    assert_words(e, &c, VERDICT_INCONCLUSIVE, "another seed has no result so far");
    c.challenges = (struct challenges){ .unchanged = 1, .run = "01R9" };
    assert_words(e, &c, VERDICT_INCONCLUSIVE,
                 "the control varied, but it answers without its inputs: with another "
                 "seed, run 01R9 computed from the same ones");
    c.right = true; /* another control */
    assert_int_equal(judge(e, &c), VERDICT_REPRODUCIBLE);
}

static void test_what_is_out_of_bound_fails_whatever_else(void **state)
{
    struct evidence e = completed(500, 1);

    (void)state;
    e.checks.failed = 1;
    e.checks.passed = 7;
    snprintf(e.checks.failed_words, sizeof e.checks.failed_words,
             "dw[5] is 42, the reference 0.31 \xc2\xb1 1e-06");
    assert_words(e, &control_varied, VERDICT_FAILING,
                 "out of bound of the float64 reference: dw[5] is 42, the reference 0.31 "
                 "\xc2\xb1 1e-06; 1 digest in 500 runs / 5000 iterations");
    e.distinct_digests = 2;
    assert_words(e, &is_control, VERDICT_FAILING, "2 digests in 500 runs");
}

static void test_a_control_that_is_wrong_vouches_for_nothing(void **state)
{
    struct control c = control_varied;

    (void)state;
    c.right = false;
    assert_reason(&c, VERDICT_INCONCLUSIVE,
                  "the control varied, but was not compared with the float64 reference, "
                  "which its next run is asked to do");
    c.checks.unanswered = 2;
    assert_reason(&c, VERDICT_INCONCLUSIVE, "too old to do");
    c.checks.failed = 1;
    snprintf(c.checks.failed_words, sizeof c.checks.failed_words, "y[0] is 7");
    assert_reason(
        &c, VERDICT_INCONCLUSIVE,
        "the control varied, but it is out of bound of the float64 reference: y[0] is 7");
    c.right = true; /* another control */
    assert_reason(&c, VERDICT_REPRODUCIBLE, "within bound");
}

/* Never right behind a comma: stored reasons have it so. */
static void test_long_conditions_are_cut(void **state)
{
    struct control c = control_varied;

    (void)state;
    c.conditions = "{\"memory-poison\":\"0badcafe\",\"probe-names\":\"a,b:{c}*dw12\"}";
    assert_reason(&c, VERDICT_REPRODUCIBLE,
                  "varied with memory-poison 0badcafe, probe-names a,b:{, as 5 of");
    c.conditions = "{\"allocation-jitter\":\"12345678\",\"contention\":4,\"probes\":1}";
    assert_reason(&c, VERDICT_REPRODUCIBLE,
                  "varied with allocation-jitter 12345678, contention 4, , as 5 of");
}

static void test_two_digests_vary_whatever_else(void **state)
{
    struct evidence e = completed(5, 2);

    (void)state;
    assert_string_equal(verdict_judge(&e, &control_flat).reason,
                        "2 digests in 5 runs / 50 iterations; each device agreed with "
                        "itself under the same conditions");
    e.varied = true;
    assert_string_equal(verdict_judge(&e, &control_flat).reason,
                        "2 digests in 5 runs / 50 iterations");
    assert_int_equal(judge(e, &control_flat), VERDICT_VARIES);
    e.runs[OUTCOME_CRASHED] = 3;
    e.completed_since_failure = 0;
    assert_int_equal(judge(e, &control_varied), VERDICT_VARIES);
}

static void test_failures_are_never_green(void **state)
{
    static const enum outcome failures[] = { OUTCOME_TIMEOUT, OUTCOME_CRASHED,
                                             OUTCOME_OUT_OF_MEMORY, OUTCOME_INVALID };

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct evidence e = completed(100, 1);

        e.runs[failures[i]] = 1;
        e.completed_since_failure = VERDICT_HEALING_RUNS - 1;
        assert_int_equal(judge(e, &control_varied), VERDICT_FAILING);
        e.completed_since_failure = VERDICT_HEALING_RUNS;
        assert_int_equal(judge(e, &control_varied), VERDICT_REPRODUCIBLE);
    }
}

static void test_infrastructure_speaks_against_nobody(void **state)
{
    struct evidence e = completed(5, 1);

    (void)state;
    e.runs[OUTCOME_LOST] = e.runs[OUTCOME_INFRA] = e.runs[OUTCOME_CANCELLED] = 9;
    assert_int_equal(judge(e, &control_varied), VERDICT_REPRODUCIBLE);
    e = completed(0, 0);
    e.runs[OUTCOME_LOST] = 9;
    assert_int_equal(judge(e, &control_varied), VERDICT_UNMEASURED);
}

static void test_unsupported(void **state)
{
    struct evidence e = completed(0, 0);

    (void)state;
    e.runs[OUTCOME_UNSUPPORTED] = 2;
    assert_int_equal(judge(e, &control_varied), VERDICT_UNSUPPORTED);
    e = completed(5, 1);
    e.runs[OUTCOME_UNSUPPORTED] = 1;
    assert_int_equal(judge(e, &control_varied), VERDICT_INCONCLUSIVE);
}

static void test_nothing_is_green_without_a_control(void **state)
{
    struct control none = { .no_control = "it only copies" };
    struct evidence e = completed(500, 1);
    struct judgement j = verdict_judge(&e, &none);

    (void)state;
    assert_int_equal(j.verdict, VERDICT_INCONCLUSIVE);
    assert_string_equal(j.reason,
                        "1 digest in 500 runs / 5000 iterations, but no control "
                        "that could have varied: it only copies");
    none.varied = none.differed = true;
    none.conditions = "";
    none.own_runs = 500;
    assert_int_equal(judge(e, &none), VERDICT_INCONCLUSIVE);
    assert_int_equal(judge(completed(5, 2), &none), VERDICT_VARIES);
}

/* No evidence whatever is green unless it has two completed runs, one digest, a control
 * that varied, and no recent failure: over many random counts. */
static void test_random_counts_never_earn_green_falsely(void **state)
{
    (void)state;
    srandom(1);
    for (int i = 0; i < 200000; i++) {
        struct evidence e = { .distinct_digests = random() % 3,
                              .iterations = random() % 30 };
        struct control c = { .is_control = random() % 2,
                             .no_control = random() % 2 ? "because I say so" : NULL,
                             .runs = random() % 3 };
        int64_t failed = 0;

        e.checks.has_reference = random() % 2;
        e.checks.passed = random() % 2;
        e.unseeded = random() % 8 == 0;
        e.challenges = (struct challenges){ .passed = random() % 3,
                                            .repeated = random() % 8,
                                            .unchanged = random() % 4 == 0 };
        c.differed = c.runs > 0 && random() % 2;
        c.right = c.differed && random() % 2;
        c.is_command = !e.checks.has_reference;
        c.varied = c.differed && random() % 2;
        c.conditions = c.varied ? "" : NULL;
        c.own_runs = c.varied ? random() % 4 : 0;
        for (int o = 0; o < OUTCOME_COUNT; o++) {
            e.runs[o] = random() % 4 == 0 ? random() % 25 : 0;
            failed += outcome_is_failure((enum outcome)o) ? e.runs[o] : 0;
        }
        e.completed_since_failure = random() % 25;
        if (verdict_judge(&e, &c).verdict == VERDICT_REPRODUCIBLE) {
            assert_true(e.runs[OUTCOME_COMPLETED] >= 2);
            assert_true(e.distinct_digests <= 1);
            assert_true(e.checks.has_reference
                            ? e.checks.passed > 0
                            : e.challenges.passed > 0 && e.challenges.unchanged == 0 &&
                                  !e.unseeded);
            assert_true(c.right && c.varied && c.own_runs >= VERDICT_MIN_RUNS &&
                        !c.is_control && !c.no_control);
            assert_true(failed == 0 || e.completed_since_failure >= VERDICT_HEALING_RUNS);
            assert_int_equal(e.runs[OUTCOME_UNSUPPORTED], 0);
        }
    }
}

static void test_stale_hides_green_only(void **state)
{
    (void)state;
    assert_int_equal(verdict_at(VERDICT_REPRODUCIBLE, 0, 0, 1000, 999), VERDICT_STALE);
    assert_int_equal(verdict_at(VERDICT_REPRODUCIBLE, 0, 0, 999, 999),
                     VERDICT_REPRODUCIBLE);
    assert_int_equal(verdict_at(VERDICT_REPRODUCIBLE, 0, 0, 1000, 0),
                     VERDICT_REPRODUCIBLE);
    assert_int_equal(verdict_at(VERDICT_REPRODUCIBLE, 1000, 1000, 0, 999), VERDICT_STALE);
    assert_int_equal(verdict_at(VERDICT_REPRODUCIBLE, 999, 999, 0, 999),
                     VERDICT_REPRODUCIBLE);
    assert_int_equal(verdict_at(VERDICT_REPRODUCIBLE, 5000, 0, 5000, 999), VERDICT_STALE);
    assert_int_equal(verdict_at(VERDICT_REPRODUCIBLE, 5000, 4001, 5000, 999),
                     VERDICT_REPRODUCIBLE);
    assert_int_equal(verdict_at(VERDICT_REPRODUCIBLE, 5000, 6000, 5000, 999),
                     VERDICT_STALE);
    assert_int_equal(verdict_at(VERDICT_REPRODUCIBLE, 5000, 0, 5000, 0),
                     VERDICT_REPRODUCIBLE);
    assert_int_equal(verdict_at(VERDICT_VARIES, 0, 0, 1000, 1), VERDICT_VARIES);
    assert_int_equal(verdict_at(VERDICT_FAILING, 0, 0, 1000, 1), VERDICT_FAILING);
}

/* A control that varied two years ago vouches for nothing today. */
static void test_a_stale_verdict_says_what_is_too_old(void **state)
{
    const int64_t hour_ms = VERDICT_VOUCHED_STEP_MS;
    struct control c = control_varied;
    struct evidence e = completed(5, 1);
    char reason[VERDICT_REASON_SIZE];

    (void)state;
    c.varied_ms = 90 * hour_ms + 1234567;
    assert_int_equal(verdict_judge(&e, &c).vouched_ms, 90 * hour_ms);
    assert_int_equal(verdict_judge(&e, &control_flat).vouched_ms, 0);
    verdict_stale_reason("so", 99 * hour_ms, 100 * hour_ms, 8 * hour_ms, reason);
    assert_string_equal(reason,
                        "the control last varied more than 8 hours ago; then: so");
    verdict_stale_reason("so", 91 * hour_ms, 100 * hour_ms, 8 * hour_ms, reason);
    assert_string_equal(reason, "the last run completed more than 8 hours ago; then: so");
}

static void test_names_round_trip(void **state)
{
    (void)state;
    for (int i = 0; i < VERDICT_COUNT; i++) {
        enum verdict v;

        assert_int_equal(verdict_parse(verdict_name((enum verdict)i), &v), 0);
        assert_int_equal(v, i);
    }
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        enum outcome o;

        assert_int_equal(outcome_parse(outcome_name((enum outcome)i), &o), 0);
        assert_int_equal(o, i);
    }
}

static struct evidence disagreeing(void)
{
    struct evidence e = { .distinct_digests = 2,
                          .devices = 8,
                          .iterations = 400,
                          .checks = { .has_reference = true, .passed = 2 } };

    e.runs[OUTCOME_COMPLETED] = 40;
    e.agreement = (struct agreement){ .state = DISSENT_DISAGREE,
                                      .words = "1 of 8 devices dissents: GPU-3 (5 of 5)",
                                      .devices = 8,
                                      .dissenters = 1,
                                      .agreeing = 7,
                                      .one_digest = true,
                                      .runs = 35,
                                      .iterations = 350,
                                      .own_runs = 35,
                                      .passed = true };
    return e;
}

/* What the others earned stands beside it; only what they lack is missing. */
static void test_devices_that_disagree(void **state)
{
    const struct control varied = { .runs = 5,
                                    .differed = true,
                                    .right = true,
                                    .varied = true,
                                    .conditions = "",
                                    .own_runs = 40,
                                    .varied_ms = 7200001 };
    const struct control silent = { .runs = 5 };
    struct evidence e = disagreeing();
    struct judgement j = verdict_judge(&e, &varied);

    (void)state;
    assert_int_equal(j.verdict, VERDICT_DEVICES_DISAGREE);
    assert_int_equal(j.agreeing.verdict, VERDICT_REPRODUCIBLE);
    assert_int_equal(j.agreeing.devices, 7);
    assert_int_equal(j.agreeing.runs, 35);
    assert_int_equal(j.vouched_ms, 7200000);
    assert_int_equal(strncmp(j.reason, e.agreement.words, strlen(e.agreement.words)), 0);
    assert_non_null(strstr(j.reason, "; 7 agree, reproducible: 1 digest in 35 runs"));
    j = verdict_judge(&e, &silent);
    assert_int_equal(j.verdict, VERDICT_DEVICES_DISAGREE);
    assert_int_equal(j.agreeing.verdict, VERDICT_INCONCLUSIVE);
    e.agreement.own_runs = 1;
    assert_int_equal(verdict_judge(&e, &varied).agreeing.verdict, VERDICT_INCONCLUSIVE);
    e = disagreeing();
    e.agreement.passed = false;
    assert_int_equal(verdict_judge(&e, &varied).agreeing.verdict, VERDICT_INCONCLUSIVE);
    e = disagreeing();
    e.agreement.one_digest = false;
    assert_int_equal(verdict_judge(&e, &varied).agreeing.verdict, VERDICT_UNMEASURED);
    e = disagreeing();
    e.agreement.dissenters = 0;
    assert_int_equal(verdict_judge(&e, &varied).agreeing.verdict, VERDICT_UNMEASURED);
    assert_int_equal(verdict_judge(&e, &varied).verdict, VERDICT_DEVICES_DISAGREE);
}

/* Load may be why. */
static void test_a_dissent_beside_others_says_so(void **state)
{
    const struct control control = { .runs = 5 };
    struct evidence e = disagreeing();

    (void)state;
    assert_null(strstr(verdict_judge(&e, &control).reason, "while others"));
    e.agreement.beside_others = 1;
    assert_non_null(strstr(verdict_judge(&e, &control).reason,
                           ", seen only while others used the device; 7 agree"));
    e.agreement.dissenters = 3;
    assert_non_null(strstr(verdict_judge(&e, &control).reason,
                           ", 1 of them only while others used the device; 7 agree"));
    e.agreement.beside_others = 3;
    e.agreement.one_digest = false;
    assert_non_null(strstr(verdict_judge(&e, &control).reason,
                           ", seen only while others used the devices"));
    e.agreement.state = DISSENT_BOTH;
    assert_non_null(strstr(verdict_judge(&e, &control).reason,
                           ", seen only while others used the devices"));
}

/* Out of bound on a named device is part of its dissent; elsewhere the case fails. */
static void test_a_check_that_only_a_dissenter_failed(void **state)
{
    const struct control control = { .runs = 5 };
    struct evidence e = disagreeing();

    (void)state;
    e.checks.failed = 1;
    assert_int_equal(verdict_judge(&e, &control).verdict, VERDICT_DEVICES_DISAGREE);
    assert_non_null(strstr(verdict_judge(&e, &control).reason, "out of bound"));
    e.agreement.failed = true;
    assert_int_equal(verdict_judge(&e, &control).verdict, VERDICT_FAILING);
    e.agreement.failed = false;
    e.agreement.one_digest = false;
    assert_int_equal(verdict_judge(&e, &control).verdict, VERDICT_FAILING);
    e.agreement.state = DISSENT_UNDECIDED;
    assert_int_equal(verdict_judge(&e, &control).verdict, VERDICT_FAILING);
    e.checks.failed = 0;
    assert_int_equal(verdict_judge(&e, &control).verdict, VERDICT_INCONCLUSIVE);
    e.agreement.state = DISSENT_BOTH;
    assert_int_equal(verdict_judge(&e, &control).verdict, VERDICT_VARIES);
    assert_non_null(strstr(verdict_judge(&e, &control).reason, "GPU-3"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices_that_disagree),
        cmocka_unit_test(test_a_dissent_beside_others_says_so),
        cmocka_unit_test(test_a_check_that_only_a_dissenter_failed),
        cmocka_unit_test(test_green_must_be_earned),
        cmocka_unit_test(test_a_control_counts_under_the_same_conditions),
        cmocka_unit_test(test_one_digest_needs_a_check_that_passed),
        cmocka_unit_test(test_a_command_needs_a_challenge_that_passed),
        cmocka_unit_test(test_a_command_that_ignores_its_inputs_is_found),
        cmocka_unit_test(test_a_control_that_ignores_its_inputs_vouches_for_nothing),
        cmocka_unit_test(test_what_is_out_of_bound_fails_whatever_else),
        cmocka_unit_test(test_a_control_that_is_wrong_vouches_for_nothing),
        cmocka_unit_test(test_a_library_that_warns_is_believed),
        cmocka_unit_test(test_long_conditions_are_cut),
        cmocka_unit_test(test_two_digests_vary_whatever_else),
        cmocka_unit_test(test_failures_are_never_green),
        cmocka_unit_test(test_infrastructure_speaks_against_nobody),
        cmocka_unit_test(test_unsupported),
        cmocka_unit_test(test_nothing_is_green_without_a_control),
        cmocka_unit_test(test_random_counts_never_earn_green_falsely),
        cmocka_unit_test(test_stale_hides_green_only),
        cmocka_unit_test(test_a_stale_verdict_says_what_is_too_old),
        cmocka_unit_test(test_names_round_trip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
