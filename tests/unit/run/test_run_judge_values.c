/* A run with one wrong value, or one missing, is invalid, and the cause names it. */
#include "tests/unit/jobs/options_fixture.h"
#include "tests/unit/run/run_judge_fixture.h"

/* One field of one event is set to VALUE (JSON), or removed if that is NULL. */
struct change {
    int event;
    const char *field, *value, *cause;
};

static void check_change(const struct change *change)
{
    json_t *events[EVENTS];
    struct run_judge judge;
    struct run_result result;
    struct run_record run;

    judge_init(&judge);
    good_events(events);
    if (change->value) {
        json_object_set_new(events[change->event], change->field,
                            json_loads(change->value, JSON_DECODE_ANY, NULL));
    } else {
        json_object_del(events[change->event], change->field);
    }
    run = judge_finish(&judge, events, EVENTS, &good_exit, &result);
    if (run.outcome != OUTCOME_INVALID || !strstr(run.cause, change->cause)) {
        fail_msg("%s = %s: %s, '%s' instead of '%s'", change->field,
                 change->value ? change->value : "(none)", outcome_name(run.outcome),
                 run.cause, change->cause);
    }
    assert_int_equal(result.digest_count, 0);
    assert_string_equal(run.digest, "");
    assert_string_equal(run.weight_sum, "");
    assert_int_equal(run.elements, 0);
    run_judge_release(&judge);
}

static void test_every_wrong_value(void **state)
{
    static const struct change changes[] = {
        { 0, "v", "2", "protocol version 2" },
        { 0, "workload", "\"ctc_loss\"", "workload is 'ctc_loss'" },
        { 0, "version", "2", "version is 2" },
        { 0, "variant", "\"unordered\"", "variant is" },
        { 0, "size", "\"large\"", "size is" },
        { 0, "dtype", "\"float64\"", "dtype is" },
        { 0, "seed", "\"8\"", "seed is 8" },
        { 0, "seed", "\"-1\"", "seed is not a decimal" },
        { 0, "seed", "\"\"", "seed is not a decimal" },
        { 0, "seed", "\"18446744073709551616\"", "seed is not a decimal" },
        { 0, "seed", "7", "start:" },
        { 0, "iterations", "2", "iterations is 2" },
        { 0, "device", "\"cpu:host-b\"", "device is 'cpu:host-b'" },
        { 0, "device", "\"unknown\"", "device is 'unknown'" },
        { 0, "claim", "7", "claim" },
        { 0, "claim", "\"nondeterministic\"",
          "claim must be deterministic or non-deterministic, or null" },
        { 0, "input_digest", "\"00\"", "input_digest" },
        { 0, "input_digest", "null", "start:" },
        { 0, "backend", "\"cuda\"", "environment.backend" },
        { 0, "threads", "3", "environment.threads" },
        { 0, "environment", "{}", "environment does not name" },
        { 0, "environment", "{\"backend\":\"cpu\",\"model\":\"\",\"worker_build\":\"b\"}",
          "environment does not name its model" },
        { 0, "environment", "[]", "environment must be an object" },
        { 0, "environment", "{\"backend\":\"cpu\",\"model\":\"x\"}", "worker_build" },
        { 0, "environment", "{\"backend\":1.5}", "environment/backend is neither" },
        { 0, "libraries", "{}", "libraries" },
        { 0, "libraries", "[{\"path\":1,\"build_id\":null}]",
          "libraries/0/path must be a text" },
        { 0, "telemetry", "[]", "start: telemetry must be an object, or null" },
        { 0, "telemetry", "true", "start: telemetry must be an object, or null" },
        { 0, "telemetry", "{\"gpu\":{}}", "telemetry/gpu is no string" },
        { 0, "telemetry", "{\"gpu\":null}", "telemetry/gpu is no string" },
        { 0, "telemetry", "{\"gpu\":[1,\"x\"]}", "telemetry/gpu is no string" },
        { 0, "telemetry", "{\"gpu\":[[]]}", "telemetry/gpu is no string" },
        { 4, "telemetry", "{\"a\":[\"x\",1]}", "end: telemetry/a is no string" },
        { 4, "telemetry", "\"hot\"", "end: telemetry must be an object, or null" },
        { 4, "probes_dropped", "-1", "end: probes_dropped" },
        { 4, "probes_dropped", "9007199254740993", "end: probes_dropped" },
        { 4, "probes_dropped", "\"1\"",
          "end: probes_dropped must be a whole number from 0" },
        { 0, "event", "\"begin\"", "iteration before start" },
        { 1, "i", "1", "iteration 1 came where 0" },
        { 2, "i", "0", "iteration 0 came where 1" },
        { 2, "i", "\"1\"", "iteration 1:" },
        { 3, "i", "-1", "iteration -1 came" },
        { 1, "digest", "\"aaaa\"", "digest must be 32 hex" },
        { 1, "digest", "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"", "digest must be 32" },
        { 1, "digest", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"", "digest must be 32" },
        { 1, "digest", "7", "iteration 0:" },
        { 2, "digest", "\"00000000000000000000000000000000\"",
          "iteration 1 has a digest of zeros" },
        { 3, "weight_sum", "\"c0234c2400000001\"",
          "iterations 1 and 2 have the same digest and another weight sum or loss" },
        { 1, "loss", "\"3ff0000000000000\"",
          "iterations 0 and 1 have the same digest and another weight sum or loss" },
        { 3, "weight_sum", "\"xyz\"", "weight_sum must be 16" },
        { 3, "weight_sum", "null", "iteration 2:" },
        { 3, "weight_sum", "\"7ff8000000000000\"", "weight_sum is NaN" },
        { 3, "weight_sum", "\"fff0000000000001\"", "weight_sum is NaN" },
        { 3, "loss", "\"7ff8000000000000\"", "loss is NaN" },
        { 3, "weight_sum", "\"7ff0000000000000\"",
          "iteration 2: weight_sum is infinite" },
        { 1, "weight_sum", "\"fff0000000000000\"",
          "iteration 0: weight_sum is infinite" },
        { 3, "loss", "\"7ff0000000000000\"", "loss is infinite" },
        { 3, "loss", "\"fff0000000000000\"", "loss is infinite" },
        { 3, "loss", "1.0", "loss" },
        { 3, "loss", "\"1.0\"", "loss must be 16 hex digits in lower case, or null" },
        { 3, "ms", "-1", "ms must be a number from 0 to 604800000" },
        { 3, "ms", "1e300", "ms must be a number from 0 to 604800000" },
        { 3, "ms", "null", "iteration 2:" },
        { 3, "event", "7", "a line without an event" },
        { 4, "libraries", "{}", "end: libraries must be an array" },
        { 4, "libraries", "[{\"path\":\"/x\"}]", "end: libraries/0/build_id is missing" },
        { 4, "outcome", "\"timeout\"", "no outcome that a worker can claim" },
        { 4, "outcome", "\"lost\"", "no outcome that a worker can claim" },
        { 4, "outcome", "\"fine\"", "no outcome that a worker can claim" },
        { 4, "outcome", "\"unsupported\"", "without a cause" },
        { 4, "outcome", "\"out_of_memory\"", "without a cause" },
        { 4, "outcome", "\"infra\"", "without a cause" },
        { 4, "cause", "7", "end: cause must be a text" },
        { 4, "iterations", "2", "end counts 2" },
        { 4, "iterations", "4", "end counts 4" },
        { 4, "elements", "0", "no proof of work" },
        { 4, "elements", "-1", "no proof of work" },
        { 4, "elements", "18433",
          "55296 bytes hashed are fewer than 18433 elements in each of 3 iterations" },
        { 4, "elements", "4611686018427387904", "no proof of work" },
        { 4, "bytes_hashed", "0", "no proof of work" },
        { 4, "bytes_hashed", "4611686018427387904", "no proof of work: nothing hashes" },
        { 4, "device", "\"cpu:host-b\"", "device at the end" },
        { 4, "input_digest", "\"" DIGEST_A "\"", "the inputs changed" },
        { 4, "input_digest", "\"\"", "input_digest" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        check_change(&changes[i]);
    }
}

/* A run takes a second at least, and a longer one may have hashed more. */
static void test_what_a_run_may_have_hashed(void **state)
{
    static const struct {
        double wall_ms;
        json_int_t bytes;
        enum outcome outcome;
    } cases[] = {
        { 1, 100000000000000, OUTCOME_COMPLETED },
        { 1000, 100000000000001, OUTCOME_INVALID },
        { 2000, 200000000000000, OUTCOME_COMPLETED },
        { 2000, 200000000000001, OUTCOME_INVALID },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct run_exit exit = good_exit;
        json_t *events[EVENTS];
        struct run_judge judge;
        struct run_result result;

        exit.wall_ms = cases[i].wall_ms;
        judge_init(&judge);
        good_events(events);
        json_object_set_new(events[4], "bytes_hashed", json_integer(cases[i].bytes));
        assert_int_equal(judge_finish(&judge, events, EVENTS, &exit, &result).outcome,
                         cases[i].outcome);
        run_judge_release(&judge);
    }
}

static void test_every_field_is_required(void **state)
{
    static const int kinds[] = { 0, 1, 4 };
    json_t *events[EVENTS];

    (void)state;
    good_events(events);
    for (int k = 0; k < 3; k++) {
        const char *field;
        json_t *value;

        json_object_foreach(events[kinds[k]], field, value)
        {
            char missing[64];
            struct change change = { kinds[k], field, NULL, missing };

            snprintf(missing, sizeof missing, "%s is missing", field);
            if (strcmp(field, "event") == 0) {
                change.cause = "a line without an event";
            }

            if (strcmp(field, "of_the_future") != 0) {
                check_change(&change);
            }
        }
    }
    for (int i = 0; i < EVENTS; i++) {
        json_decref(events[i]);
    }
}

/* A run that was asked for OPTIONS and says SAID, JSON or NULL for nothing. */
static struct run_record under(const char *options, const char *said)
{
    struct run_options asked = options_of(options);
    json_t *events[EVENTS];
    struct run_judge judge;
    struct run_result result;
    struct run_record run;

    judge_init(&judge);
    run_judge_options(&judge, &asked);
    good_events(events);
    if (said) {
        json_object_set_new(events[0], "circumstances", parse_json(said));
    }
    run = judge_finish(&judge, events, EVENTS, &good_exit, &result);
    run_judge_release(&judge);
    return run;
}

static void refuse_circumstances(const char *options, const char *said, const char *cause)
{
    struct run_record run = under(options, said);

    assert_int_equal(run.outcome, OUTCOME_INVALID);
    if (!strstr(run.cause, cause)) {
        fail_msg("wanted '%s' in '%s'", cause, run.cause);
    }
}

static void test_circumstances_are_those_that_were_asked_for(void **state)
{
    char longer[2 * RUN_DRAWN_SIZE + 64];
    char cause[64];
    static const char all[] =
        "{\"allocation-jitter\":\"random\",\"contention\":4,"
        "\"memory-poison\":\"0badcafe\"}";
    struct run_record run;

    (void)state;
    run = under(all,
                "{\"memory_poison\":\"0badcafe\",\"contention\":4,"
                "\"allocation_jitter\":\"7\",\"other\":1}");
    assert_int_equal(run.outcome, OUTCOME_COMPLETED);
    assert_string_equal(run.circumstances,
                        "{\"allocation_jitter\":\"7\",\"contention\":4,"
                        "\"memory_poison\":\"0badcafe\"}");
    assert_string_equal(under("", NULL).circumstances, "");
    assert_int_equal(under("{\"probes\":1}", "{}").outcome, OUTCOME_COMPLETED);
    refuse_circumstances(all, NULL, "contention is 0, 4 was asked for");
    refuse_circumstances("{\"contention\":4}", "{\"contention\":3}", "is 3, 4 was");
    refuse_circumstances("", "{\"contention\":3}", "is 3, 0 was asked for");
    refuse_circumstances("{\"shared-import\":1}", NULL,
                         "shared_import is 0, 1 was asked for");
    refuse_circumstances("", "{\"shared_import\":1}", "is 1, 0 was asked for");
    refuse_circumstances("", "{\"shared_import\":true}", "no number of imports");
    refuse_circumstances("", "{\"contention\":0}", "no number of loads");
    refuse_circumstances("", "{\"contention\":\"3\"}", "no number of loads");
    refuse_circumstances("", "[]", "circumstances is not an object");
    refuse_circumstances("{\"memory-poison\":\"random\"}", "{}", "is none, random was");
    refuse_circumstances("{\"memory-poison\":\"00000001\"}",
                         "{\"memory_poison\":\"00000002\"}", "00000001 was asked for");
    refuse_circumstances("", "{\"allocation_jitter\":\"1\"}", "none was asked for");
    refuse_circumstances("", "{\"allocation_jitter\":1}", "is not text");
    snprintf(longer, sizeof longer, "{\"memory_poison\":\"%0*d\"}", RUN_DRAWN_SIZE, 1);
    snprintf(cause, sizeof cause, "memory_poison is longer than %d bytes",
             RUN_DRAWN_SIZE - 1);
    refuse_circumstances("{\"memory-poison\":\"random\"}", longer, cause);
    snprintf(longer, sizeof longer,
             "{\"memory_poison\":\"%0*d\",\"allocation_jitter\":\"%0*d\"}",
             RUN_DRAWN_SIZE - 1, 1, RUN_DRAWN_SIZE - 1, 1);
    refuse_circumstances(
        "{\"memory-poison\":\"random\",\"allocation-jitter\":\"random\"}", longer,
        "circumstances are longer than 127 bytes");
}

static void test_what_its_library_claims_is_kept(void **state)
{
    static const char *const claims[] = { "deterministic", "non-deterministic", "" };

    (void)state;
    for (int i = 0; i < 3; i++) {
        json_t *events[EVENTS];
        struct run_judge judge;
        struct run_result result;
        struct run_record run;

        judge_init(&judge);
        good_events(events);
        json_object_set_new(events[0], "claim",
                            claims[i][0] ? json_string(claims[i]) : json_null());
        run = judge_finish(&judge, events, EVENTS, &good_exit, &result);
        assert_int_equal(run.outcome, OUTCOME_COMPLETED);
        assert_string_equal(run.claim, claims[i]);
        run_judge_release(&judge);
    }
}

/* An environment need not say how many threads there are; the start event does. */
static void test_an_environment_without_threads(void **state)
{
    json_t *events[EVENTS];
    struct run_judge judge;
    struct run_result result;
    struct run_record run;

    (void)state;
    judge_init(&judge);
    good_events(events);
    json_object_del(json_object_get(events[0], "environment"), "threads");
    run = judge_finish(&judge, events, EVENTS, &good_exit, &result);
    assert_int_equal(run.outcome, OUTCOME_COMPLETED);
    assert_string_equal(result.environment_json,
                        "{\"backend\":\"cpu\",\"model\":\"AMD EPYC 9B14\","
                        "\"worker_build\":\"3f2a91c0dd\"}");
    run_judge_release(&judge);
}

/* An end that says nothing of why it ended so early says less than it must. */
static void test_an_empty_cause_is_none(void **state)
{
    json_t *good[EVENTS], *events[2];
    struct run_judge judge;
    struct run_result result;
    struct run_record run;

    (void)state;
    judge_init(&judge);
    good_events(good);
    for (int i = 1; i <= 3; i++) {
        json_decref(good[i]);
    }
    events[0] = good[0];
    events[1] = good[4];
    json_object_set_new(events[1], "outcome", json_string("unsupported"));
    json_object_set_new(events[1], "cause", json_string(""));
    run = judge_finish(&judge, events, 2, &good_exit, &result);
    assert_int_equal(run.outcome, OUTCOME_INVALID);
    assert_string_equal(run.cause, "end: unsupported without a cause");
    run_judge_release(&judge);
}

/* What loaded libraries at the end of a run whose start could not be read is not known to
 * be of any environment. */
static void test_libraries_at_the_end_of_no_start(void **state)
{
    json_t *events[EVENTS];
    struct run_judge judge;
    struct run_result result;
    struct run_record run;

    (void)state;
    judge_init(&judge);
    good_events(events);
    json_object_del(events[0], "libraries");
    json_object_set_new(events[4], "libraries", json_array());
    run = judge_finish(&judge, events, EVENTS, &good_exit, &result);
    assert_int_equal(run.outcome, OUTCOME_INVALID);
    assert_non_null(strstr(run.cause, "start: libraries is missing"));
    assert_null(result.libraries_json);
    assert_null(result.environment_json);
    run_judge_release(&judge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_circumstances_are_those_that_were_asked_for),
        cmocka_unit_test(test_what_its_library_claims_is_kept),
        cmocka_unit_test(test_every_wrong_value),
        cmocka_unit_test(test_what_a_run_may_have_hashed),
        cmocka_unit_test(test_every_field_is_required),
        cmocka_unit_test(test_an_environment_without_threads),
        cmocka_unit_test(test_an_empty_cause_is_none),
        cmocka_unit_test(test_libraries_at_the_end_of_no_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
