/* How the process exited decides the outcome together with what it said. */
#include "tests/unit/run/run_judge_fixture.h"

#include <signal.h>

static void test_exits(void **state)
{
    static const char said[] = "loading\n{\"event\": \"start\"}\n";
    static const struct {
        struct run_exit exit;
        const char *what; /* 'g': a good run; 'n': nothing; 's': start only */
        enum outcome outcome;
        const char *cause;
    } exits[] = {
        { { .reason = EXIT_REASON_TIMEOUT }, "g", OUTCOME_TIMEOUT, "3 of 3 iterations" },
        { { .reason = EXIT_REASON_TIMEOUT, .signal = SIGKILL },
          "s",
          OUTCOME_TIMEOUT,
          "0 of 3" },
        { { .reason = EXIT_REASON_CANCELLED }, "g", OUTCOME_CANCELLED, "cancelled" },
        { { .reason = EXIT_REASON_FLOOD }, "g", OUTCOME_INVALID, "flood" },
        { { .reason = EXIT_REASON_STUCK, .exit_code = -1 },
          "g",
          OUTCOME_INFRA,
          "the next run starts beside it" },
        { { .signal = SIGSEGV, .exit_code = -1 }, "g", OUTCOME_CRASHED, "SIGSEGV" },
        { { .signal = SIGABRT, .exit_code = -1 }, "n", OUTCOME_CRASHED, "SIGABRT" },
        { { .signal = 40, .exit_code = -1 }, "n", OUTCOME_CRASHED, "SIG? (signal 40)" },
        { { .exit_code = 0 }, "n", OUTCOME_CRASHED, "exit status 0 without an end" },
        { { .exit_code = 3 }, "s", OUTCOME_CRASHED, "exit status 3 without an end" },
        { { .exit_code = 0, .log = said, .log_length = sizeof said - 1 },
          "n",
          OUTCOME_CRASHED,
          "belong on descriptor 3" },
        { { .exit_code = 0, .log = said, .log_length = sizeof said - 1 },
          "s",
          OUTCOME_CRASHED,
          "exit status 0 without an end event" },
        { { .exit_code = 3 }, "g", OUTCOME_INVALID, "exit status 3 after the end" },
        { { .exit_code = -1 }, "g", OUTCOME_INVALID, "exit status -1 after the end" },
        { { .exit_code = 127 }, "n", OUTCOME_INFRA, "could not be started" },
        { { .exit_code = 125 }, "n", OUTCOME_INFRA, "could not be started" },
        { { .exit_code = 127 }, "s", OUTCOME_CRASHED, "exit status 127 without" },
        { { .exit_code = 124 }, "n", OUTCOME_CRASHED, "exit status 124 without" },
        { { .exit_code = 128 }, "n", OUTCOME_CRASHED, "exit status 128 without" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof exits / sizeof *exits; i++) {
        json_t *events[EVENTS];
        int count = exits[i].what[0] == 'g' ? EVENTS : exits[i].what[0] == 's';
        struct run_judge judge;
        struct run_result result;
        struct run_record run;

        judge_init(&judge);
        good_events(events);
        for (int k = count; k < EVENTS; k++) {
            json_decref(events[k]);
        }
        run = judge_finish(&judge, events, count, &exits[i].exit, &result);
        assert_int_equal(run.outcome, exits[i].outcome);
        assert_non_null(strstr(run.cause, exits[i].cause));
        run_judge_release(&judge);
    }
}

static void test_early_ends(void **state)
{
    static const enum outcome outcomes[] = { OUTCOME_UNSUPPORTED, OUTCOME_OUT_OF_MEMORY,
                                             OUTCOME_INFRA };

    (void)state;
    for (int i = 0; i < 3; i++) {
        for (int code = 0; code < 2; code++) {
            json_t *events[EVENTS], *two[2];
            struct run_exit exit = { .exit_code = code };
            struct run_judge judge;
            struct run_result result;
            struct run_record run;

            judge_init(&judge);
            good_events(events);
            two[0] = json_incref(events[0]);
            two[1] = json_incref(events[4]);
            json_object_set_new(two[1], "outcome",
                                json_string(outcome_name(outcomes[i])));
            json_object_set_new(two[1], "cause", json_string("because"));
            json_object_set_new(two[1], "elements", json_integer(0));
            run = judge_finish(&judge, two, 2, &exit, &result);
            assert_int_equal(run.outcome, code ? OUTCOME_INVALID : outcomes[i]);
            assert_string_equal(run.cause,
                                code ? "exit status 1 after the end event" : "because");
            run_judge_release(&judge);
            for (int k = 0; k < EVENTS; k++) {
                json_decref(events[k]);
            }
        }
    }
}

static void test_zero_iterations_never_complete(void **state)
{
    struct case_key key = { "conv_wgrad", 1, "ordered", "small", "float32", 7 };
    json_t *events[EVENTS], *two[2];
    struct run_judge judge;
    struct run_result result;
    struct run_record run;

    (void)state;
    run_judge_init(&judge, &key, "cpu:host-a", 0);
    good_events(events);
    two[0] = json_incref(events[0]);
    two[1] = json_incref(events[4]);
    json_object_set_new(two[0], "iterations", json_integer(0));
    json_object_set_new(two[1], "iterations", json_integer(0));
    run = judge_finish(&judge, two, 2, &good_exit, &result);
    assert_int_equal(run.outcome, OUTCOME_INVALID);
    run_judge_release(&judge);
    for (int k = 0; k < EVENTS; k++) {
        json_decref(events[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exits),
        cmocka_unit_test(test_early_ends),
        cmocka_unit_test(test_zero_iterations_never_complete),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
