/* A run's check counts if it was asked for, and is of the very bits that the run
 * reported. */
#include <signal.h>

#include "daemon/base/array.h"
#include "tests/unit/run/run_judge_fixture.h"

#define OF_LAST "\"digest\":\"" DIGEST_A "\",\"weight_sum\":\"c0234c2400000000\","
#define WORST                                                                            \
    "\"output\":\"dw\",\"index\":5,\"got\":0.25,\"expected\":0.25,\"bound\":1e-6"
#define CHECK "{\"event\":\"check\",\"i\":2,"
#define PASSED(share, got, expected, bound)                                              \
    CHECK "\"result\":\"passed\"," OF_LAST                                               \
          "\"output\":\"dw\",\"index\":5,\"share\":" share ",\"got\":" got               \
          ",\"expected\":" expected ",\"bound\":" bound "}"
static const char passed[] =
    CHECK "\"result\":\"passed\"," OF_LAST "\"share\":0.3100001," WORST "}";
static const char failed[] =
    CHECK "\"result\":\"failed\"," OF_LAST
          "\"output\":\"dw\",\"index\":5,\"got\":\"nan\","
          "\"expected\":0.3125,\"bound\":1e-06,\"share\":\"inf\"}";
static const char given_up[] =
    "{\"event\":\"check\",\"result\":\"given_up\",\"cause\":\"too slow\"}";
static const char known[] = "{\"event\":\"check\",\"result\":\"known\"}";
static const char checking[] = "{\"event\":\"checking\",\"seconds\":300}";

static const char *told = ""; /* the digest that passed before */

/* What becomes of a run that is good but for TEXT, its events before `end`. */
static struct run_record judged(const char *text, const char *second, bool asks)
{
    struct run_judge judge;
    struct run_result result;
    struct run_record run;
    json_t *events[EVENTS + 2];
    int count = EVENTS;

    good_events(events);
    if (text) {
        events[count] = events[count - 1];
        events[count++ - 1] = parse_json(text);
    }
    if (second) {
        events[count] = events[count - 1];
        events[count++ - 1] = parse_json(second);
    }
    judge_init(&judge);
    if (asks) {
        run_judge_asks_check(&judge, told);
    }
    run = judge_finish(&judge, events, count, &good_exit, &result);
    run_judge_release(&judge);
    return run;
}

static void test_passed(void **state)
{
    struct run_record run = judged(passed, NULL, true);

    (void)state;
    assert_int_equal(run.outcome, OUTCOME_COMPLETED);
    assert_int_equal(run.check.state, CHECK_PASSED);
    assert_string_equal(run.check.digest, DIGEST_A);
    assert_int_equal(run.check.share_ppm, 310001); /* never less than it was */
    assert_string_equal(run.check.words,
                        "dw[5] is 0.25, the reference 0.25 \xc2\xb1 1e-06");
}

static void test_what_passes_at_the_edges(void **state)
{
    static const char *const good[] = {
        PASSED("1", "0.75", "0.5", "0.25"),
        PASSED("0", "0.5", "0.5", "0"),
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(good); i++) {
        assert_int_equal(judged(good[i], NULL, true).check.state, CHECK_PASSED);
    }
}

static void test_failed(void **state)
{
    struct run_record run = judged(failed, NULL, true);

    (void)state;
    assert_int_equal(run.outcome, OUTCOME_COMPLETED);
    assert_int_equal(run.check.state, CHECK_FAILED);
    assert_int_equal(run.check.share_ppm, 0);
    assert_string_equal(run.check.words,
                        "dw[5] is nan, the reference 0.3125 \xc2\xb1 1e-06");
}

static void test_given_up(void **state)
{
    struct run_record run = judged(given_up, NULL, true);

    (void)state;
    assert_int_equal(run.outcome, OUTCOME_COMPLETED);
    assert_int_equal(run.check.state, CHECK_GIVEN_UP);
    assert_string_equal(run.check.digest, "");
    assert_string_equal(run.check.words, "too slow");
}

static void test_silence_is_no_defect(void **state)
{
    struct run_record run = judged(NULL, NULL, true);

    (void)state;
    assert_int_equal(run.outcome, OUTCOME_COMPLETED);
    assert_int_equal(run.check.state, CHECK_NONE);
}

/* Nothing but what passed before: there was nothing to compare. */
static void test_known(void **state)
{
    struct run_record run;

    (void)state;
    told = DIGEST_A;
    run = judged(known, NULL, true);
    assert_int_equal(run.outcome, OUTCOME_COMPLETED);
    assert_int_equal(run.check.state, CHECK_KNOWN);
    assert_int_equal(judged(passed, NULL, true).check.state, CHECK_PASSED);
    told = DIGEST_B;
    assert_int_equal(judged(known, NULL, true).outcome, OUTCOME_INVALID);
    told = "";
    assert_int_equal(judged(known, NULL, true).outcome, OUTCOME_INVALID);
}

/* Any iteration can be compared, if its bits are those that it reported. */
static void test_an_earlier_iteration(void **state)
{
    static const char first[] =
        "{\"event\":\"check\",\"i\":0,\"result\":\"passed\",\"digest\":\"" DIGEST_B
        "\",\"weight_sum\":\"c0234c2400000001\",\"share\":0.5," WORST "}";
    struct run_judge judge;
    struct run_result result;
    json_t *events[EVENTS + 1];
    struct run_record run;

    (void)state;
    good_events(events);
    json_object_set_new(events[1], "digest", json_string(DIGEST_B));
    json_object_set_new(events[1], "weight_sum", json_string("c0234c2400000001"));
    events[EVENTS] = events[EVENTS - 1];
    events[EVENTS - 1] = parse_json(first);
    judge_init(&judge);
    run_judge_asks_check(&judge, DIGEST_A);
    run = judge_finish(&judge, events, EVENTS + 1, &good_exit, &result);
    assert_int_equal(run.outcome, OUTCOME_COMPLETED);
    assert_string_equal(run.check.digest, DIGEST_B);
    run_judge_release(&judge);
}

/* What becomes of a run whose COUNT good events EVENT follows, and then EXIT. */
static struct run_record cut_off(int count, const char *event, bool asks,
                                 const struct run_exit *exit)
{
    struct run_judge judge;
    struct run_result result;
    struct run_record run;
    json_t *good[EVENTS];
    json_t *events[EVENTS];

    good_events(good);
    for (int i = 0; i < EVENTS; i++) {
        if (i < count) {
            events[i] = good[i];
        } else {
            json_decref(good[i]);
        }
    }
    events[count] = parse_json(event);
    judge_init(&judge);
    if (asks) {
        run_judge_asks_check(&judge, "");
    }
    run = judge_finish(&judge, events, count + 1, exit, &result);
    run_judge_release(&judge);
    return run;
}

static void test_what_fails_while_it_compares_is_cut_off(void **state)
{
    static const struct run_exit aborted = { .signal = 6, .exit_code = -1 };
    static const struct run_exit late = { .signal = 9,
                                          .exit_code = -1,
                                          .reason = EXIT_REASON_TIMEOUT };
    static const struct run_exit cancelled = { .signal = 15,
                                               .exit_code = -1,
                                               .reason = EXIT_REASON_CANCELLED };
    struct run_record run = cut_off(4, checking, true, &aborted);

    (void)state;
    assert_int_equal(run.outcome, OUTCOME_CRASHED);
    assert_int_equal(run.check.state, CHECK_CUT_OFF);
    assert_string_equal(run.cause,
                        "while it compared with the float64 reference: killed "
                        "by SIGABRT (signal 6)");
    run = cut_off(4, checking, true, &late);
    assert_int_equal(run.outcome, OUTCOME_TIMEOUT);
    assert_int_equal(run.check.state, CHECK_CUT_OFF);
    assert_int_equal(cut_off(4, checking, true, &cancelled).check.state, CHECK_NONE);
    assert_int_equal(cut_off(4, checking, false, &aborted).check.state, CHECK_NONE);
    assert_int_equal(cut_off(3, checking, true, &aborted).check.state, CHECK_NONE);
    run = cut_off(4, given_up, true, &aborted);
    assert_int_equal(run.check.state, CHECK_NONE);
    assert_string_equal(run.cause, "killed by SIGABRT (signal 6)");
}

/* A run that says that memory did not suffice while it compared did its own work; one
 * that ended its comparison before it failed did not fail by that. */
static void test_what_ends_by_itself_while_it_compares(void **state)
{
    static const struct run_exit aborted = { .signal = SIGABRT, .exit_code = -1 };

    (void)state;
    for (int compared = 0; compared < 2; compared++) {
        for (int crashes = 0; crashes < 2; crashes++) {
            json_t *events[EVENTS + 2];
            struct run_judge judge;
            struct run_result result;
            struct run_record run;
            int count = EVENTS - 1;

            good_events(events);
            json_object_set_new(events[EVENTS - 1], "outcome",
                                json_string("out_of_memory"));
            json_object_set_new(events[EVENTS - 1], "cause", json_string("64 GiB"));
            events[EVENTS + 1] = events[EVENTS - 1];
            events[count++] = parse_json(checking);
            if (compared) {
                events[count++] = parse_json(passed);
            }
            if (crashes) {
                json_decref(events[EVENTS + 1]);
            } else {
                events[count++] = events[EVENTS + 1];
            }
            judge_init(&judge);
            run_judge_asks_check(&judge, "");
            run = judge_finish(&judge, events, count, crashes ? &aborted : &good_exit,
                               &result);
            assert_int_equal(run.outcome,
                             crashes ? OUTCOME_CRASHED : OUTCOME_OUT_OF_MEMORY);
            assert_int_equal(run.check.state, compared ? CHECK_NONE : CHECK_CUT_OFF);
            assert_int_equal(strstr(run.cause, "while it compared") != NULL, !compared);
            run_judge_release(&judge);
        }
    }
}

static void test_what_makes_a_run_invalid(void **state)
{
    static const char *const bad[] = {
        /* other bits than the iteration's */
        CHECK "\"result\":\"passed\",\"digest\":\"" DIGEST_B
              "\",\"weight_sum\":\"c0234c2400000000\",\"share\":0.5," WORST "}",
        CHECK "\"result\":\"passed\",\"digest\":\"" DIGEST_A
              "\",\"weight_sum\":\"c0234c2400000001\",\"share\":0.5," WORST "}",
        "{\"event\":\"check\",\"i\":3,\"result\":\"passed\"," OF_LAST
        "\"share\":0.5," WORST "}",
        /* a share that says otherwise, or nothing */
        CHECK "\"result\":\"passed\"," OF_LAST "\"share\":1.5," WORST "}",
        CHECK "\"result\":\"passed\"," OF_LAST "\"share\":\"nan\"," WORST "}",
        CHECK "\"result\":\"passed\"," OF_LAST "\"share\":-0.5," WORST "}",
        CHECK "\"result\":\"failed\"," OF_LAST "\"share\":0.5," WORST "}",
        CHECK "\"result\":\"passed\"," OF_LAST "\"share\":\"little\"," WORST "}",
        CHECK "\"result\":\"passed\"," OF_LAST WORST "}",
        CHECK "\"result\":\"passed\"}",
        /* values that say otherwise */
        PASSED("0", "42", "0.31", "1e-6"),
        PASSED("0", "0.25", "0.25", "-1"),
        PASSED("0", "0.25", "0.25", "\"inf\""),
        PASSED("0", "0.25", "0.25", "\"nan\""),
        PASSED("0", "\"nan\"", "\"nan\"", "1e-6"),
        PASSED("0", "\"inf\"", "\"-inf\"", "1e-6"),
        PASSED("0", "\"inf\"", "\"inf\"", "1e-6"),
        PASSED("0", "\"-inf\"", "\"-inf\"", "1e-6"),
        PASSED("1", "0.3", "0.2", "0.09"),
        CHECK "\"result\":\"failed\"," OF_LAST "\"share\":1.5," WORST "}",
        CHECK "\"result\":\"perhaps\"," OF_LAST "\"share\":0.5," WORST "}",
        CHECK "\"result\":\"given_up\"}",
        known,
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(bad); i++) {
        struct run_record run = judged(bad[i], NULL, true);

        if (run.outcome != OUTCOME_INVALID || strstr(run.cause, "check") == NULL ||
            run.check.state != CHECK_NONE) {
            fail_msg("%s: %s, %s", bad[i], outcome_name(run.outcome), run.cause);
        }
    }
    assert_int_equal(judged(passed, passed, true).outcome, OUTCOME_INVALID);
    assert_int_equal(judged(passed, NULL, false).outcome, OUTCOME_INVALID);
    assert_int_equal(cut_off(3, given_up, true, &good_exit).outcome, OUTCOME_INVALID);
    assert_non_null(strstr(cut_off(3, given_up, true, &good_exit).cause,
                           "before the last iteration"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passed),
        cmocka_unit_test(test_what_passes_at_the_edges),
        cmocka_unit_test(test_failed),
        cmocka_unit_test(test_given_up),
        cmocka_unit_test(test_silence_is_no_defect),
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_an_earlier_iteration),
        cmocka_unit_test(test_what_fails_while_it_compares_is_cut_off),
        cmocka_unit_test(test_what_ends_by_itself_while_it_compares),
        cmocka_unit_test(test_what_makes_a_run_invalid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
