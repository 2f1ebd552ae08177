/* A run's check counts if it was asked for, and is of the very bits that the run
 * reported. */
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
static const char given_up[] = CHECK "\"result\":\"given_up\",\"cause\":\"too slow\"}";

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
        run_judge_asks_check(&judge);
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
        PASSED("0", "\"-inf\"", "\"-inf\"", "1e-6"),
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

static void test_what_makes_a_run_invalid(void **state)
{
    static const char *const bad[] = {
        /* other bits than the last iteration's */
        CHECK "\"result\":\"passed\",\"digest\":\"" DIGEST_B
              "\",\"weight_sum\":\"c0234c2400000000\",\"share\":0.5," WORST "}",
        CHECK "\"result\":\"passed\",\"digest\":\"" DIGEST_A
              "\",\"weight_sum\":\"c0234c2400000001\",\"share\":0.5," WORST "}",
        "{\"event\":\"check\",\"i\":1,\"result\":\"passed\"," OF_LAST
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
        PASSED("1", "0.3", "0.2", "0.09"),
        CHECK "\"result\":\"failed\"," OF_LAST "\"share\":1.5," WORST "}",
        CHECK "\"result\":\"perhaps\"," OF_LAST "\"share\":0.5," WORST "}",
        CHECK "\"result\":\"given_up\"}",
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
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passed),
        cmocka_unit_test(test_what_passes_at_the_edges),
        cmocka_unit_test(test_failed),
        cmocka_unit_test(test_given_up),
        cmocka_unit_test(test_silence_is_no_defect),
        cmocka_unit_test(test_what_makes_a_run_invalid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
