/* What is kept of a run that says all it must. */
#include "daemon/base/array.h"
#include "tests/unit/run/run_judge_fixture.h"

#include <stdlib.h>

#include "daemon/run/run_event.h"
#include "workloads/instruments/digest.h"

static void test_completed(void **state)
{
    json_t *events[EVENTS];
    struct run_judge judge;
    struct run_result result;
    struct run_record run;
    char hex[DIGEST_HEX_SIZE];
    const char *canonical =
        "{\"backend\":\"cpu\",\"model\":\"AMD EPYC 9B14\","
        "\"threads\":2,\"worker_build\":\"3f2a91c0dd\"}";

    (void)state;
    judge_init(&judge);
    good_events(events);
    run = judge_finish(&judge, events, EVENTS, &good_exit, &result);
    assert_int_equal(run.outcome, OUTCOME_COMPLETED);
    assert_string_equal(run.cause, "");
    assert_int_equal(run.iterations, 3);
    assert_int_equal(run.distinct_digests, 1);
    assert_string_equal(run.digest, DIGEST_A);
    assert_string_equal(run.input_digest, INPUTS);
    assert_string_equal(run.weight_sum, "c0234c2400000000");
    assert_string_equal(run.loss, "");
    assert_string_equal(run.algorithm, "fixed tree");
    assert_string_equal(run.device_read_back, "cpu:host-a");
    assert_int_equal(run.min_ns, 11500000);
    assert_int_equal(run.median_ns, 12000000);
    assert_int_equal(run.max_ns, 12500000);
    assert_int_equal(run.elements, 4608);
    assert_int_equal(run.bytes_hashed, 55296);
    assert_int_equal(run.wall_ns, 812500000);
    assert_int_equal(run.max_rss_kb, 14000);
    assert_int_equal(result.digest_count, 1);
    assert_int_equal(result.digests[0].iterations, 3);
    assert_string_equal(result.environment_json, canonical);
    digest_hex(digest_bytes(canonical, strlen(canonical)), hex);
    assert_string_equal(run.environment, hex);
    assert_string_equal(result.environment_title,
                        "cpu \xc2\xb7 AMD EPYC 9B14 \xc2\xb7 2 threads \xc2\xb7 worker "
                        "3f2a91c0");
    assert_string_equal(result.libraries_json,
                        "[{\"path\":\"/lib/libc.so.6\",\"build_id\":null}]");
    assert_string_equal(result.log, "hello\n");
    assert_int_equal(result.log_length, 6);
    run_judge_release(&judge);
}

static void expect_algorithm(const char *const names[3], const char *wanted)
{
    json_t *events[EVENTS];
    struct run_judge judge;
    struct run_result result;
    struct run_record run;

    judge_init(&judge);
    good_events(events);
    for (int i = 0; i < 3; i++) {
        json_object_set_new(events[1 + i], "algorithm", json_string(names[i]));
    }
    run = judge_finish(&judge, events, EVENTS, &good_exit, &result);
    assert_int_equal(run.outcome, OUTCOME_COMPLETED);
    assert_string_equal(run.algorithm, wanted);
    run_judge_release(&judge);
}

/* The last one is not that of the run where its iterations chose anew. */
static void test_every_algorithm_is_named(void **state)
{
    char first[CASE_TITLE_SIZE], cut[CASE_TITLE_SIZE + 8];

    (void)state;
    expect_algorithm((const char *const[]){ "a", "b", "a" }, "a, then b");
    expect_algorithm((const char *const[]){ "ab", "a", "b" }, "ab, then a, then b");
    expect_algorithm((const char *const[]){ "b", "b", "b" }, "b");
    memset(first, 'x', sizeof first - 1);
    first[sizeof first - 5] = '\0';
    snprintf(cut, sizeof cut, "%s, th", first); /* as far as there is room */
    expect_algorithm((const char *const[]){ first, "a", "a" }, cut);
}

/* It is the first one, which loads and compiles. */
static void test_one_iteration_has_no_time(void **state)
{
    json_t *good[EVENTS];
    json_t *events[3];
    struct run_judge judge;
    struct run_result result;
    struct run_record run;
    struct case_key key = { "conv_wgrad", 1, "ordered", "small", "float32", 7 };

    (void)state;
    run_judge_init(&judge, &key, "cpu:host-a", 1);
    good_events(good);
    json_object_set_new(good[0], "iterations", json_integer(1));
    json_object_set_new(good[4], "iterations", json_integer(1));
    json_object_set_new(good[4], "bytes_hashed", json_integer(18432));
    events[0] = good[0];
    events[1] = good[1];
    events[2] = good[4];
    run = judge_finish(&judge, events, 3, &good_exit, &result);
    assert_int_equal(run.outcome, OUTCOME_COMPLETED);
    assert_int_equal(run.min_ns + run.median_ns + run.max_ns, 0);
    run_judge_release(&judge);
    json_decref(good[2]);
    json_decref(good[3]);
}

/* Without the first iteration, which loads and compiles: in whatever order the times
 * came, the median of an even number is the mean of the middle two. */
static void test_the_median_of_an_even_number(void **state)
{
    static const double ms[] = { 5, 40, 10, 21, 30 };
    json_t *events[7];
    json_t *good[EVENTS];
    struct run_judge judge;
    struct run_result result;
    struct run_record run;
    struct case_key key = { "conv_wgrad", 1, "ordered", "small", "float32", 7 };

    (void)state;
    run_judge_init(&judge, &key, "cpu:host-a", 5);
    good_events(good);
    json_object_set_new(good[0], "iterations", json_integer(5));
    json_object_set_new(good[4], "iterations", json_integer(5));
    events[0] = good[0];
    for (int i = 0; i < 5; i++) {
        events[1 + i] = i < 3 ? good[1 + i] : json_deep_copy(good[3]);
        json_object_set_new(events[1 + i], "i", json_integer(i));
        json_object_set_new(events[1 + i], "ms", json_real(ms[i]));
    }
    events[6] = good[4];
    run = judge_finish(&judge, events, 7, &good_exit, &result);
    assert_int_equal(run.outcome, OUTCOME_COMPLETED);
    assert_int_equal(run.min_ns, 10000000);
    assert_int_equal(run.median_ns, 25500000);
    assert_int_equal(run.max_ns, 40000000);
    run_judge_release(&judge);
}

static void test_a_title_names_the_libraries(void **state)
{
    json_t *environment = parse_json(
        "{\"worker_build\":\"3f2a91c0dd\",\"backend\":\"cuda\",\"model\":\"H\","
        "\"cublas\":\"13 build 0a1b2c3d4e5f\",\"nccl\":\"2.28.3\","
        "\"cudnn\":\"9.19.0\",\"cuda_runtime\":\"13.0\",\"driver\":\"580.1\"}");
    char *title = run_environment_title(environment);

    (void)state;
    assert_string_equal(title,
                        "cuda \xc2\xb7 H \xc2\xb7 driver 580.1 \xc2\xb7 CUDA 13.0 "
                        "\xc2\xb7 cuDNN 9.19.0 \xc2\xb7 cuBLAS 13 build 0a1b2c3d "
                        "\xc2\xb7 NCCL 2.28.3 \xc2\xb7 worker 3f2a91c0");
    free(title);
    json_decref(environment);
}

static void test_digests_are_counted(void **state)
{
    json_t *events[EVENTS];
    struct run_judge judge;
    struct run_result result;
    struct run_record run;

    (void)state;
    judge_init(&judge);
    good_events(events);
    json_object_set_new(events[1], "digest", json_string(DIGEST_B));
    for (int i = 2; i <= 3; i++) {
        json_object_set_new(events[i], "loss", json_string("3ff0000000000000"));
        json_object_set_new(events[i], "weight_sum", json_string("0000000000000001"));
    }
    run = judge_finish(&judge, events, EVENTS, &good_exit, &result);
    assert_int_equal(run.outcome, OUTCOME_COMPLETED);
    assert_int_equal(run.distinct_digests, 2);
    assert_string_equal(run.digest, DIGEST_B);
    assert_string_equal(run.loss, "3ff0000000000000");
    assert_string_equal(run.weight_sum, "0000000000000001");
    assert_int_equal(result.digest_count, 2);
    assert_string_equal(result.digests[0].digest, DIGEST_B);
    assert_int_equal(result.digests[0].first_iteration, 0);
    assert_int_equal(result.digests[0].iterations, 1);
    assert_string_equal(result.digests[1].digest, DIGEST_A);
    assert_int_equal(result.digests[1].first_iteration, 1);
    assert_int_equal(result.digests[1].iterations, 2);
    run_judge_release(&judge);
}

/* By the iteration that gave each first, whichever gave the other digest. */
static void test_digests_are_in_the_order_of_iterations(void **state)
{
    (void)state;
    for (int other = 0; other < 3; other++) {
        json_t *events[EVENTS];
        struct run_judge judge;
        struct run_result result;
        int a = other == 0, b = other != 0; /* where in the result */

        judge_init(&judge);
        good_events(events);
        json_object_set_new(events[1 + other], "digest", json_string(DIGEST_B));
        judge_finish(&judge, events, EVENTS, &good_exit, &result);
        assert_int_equal(result.digest_count, 2);
        assert_string_equal(result.digests[a].digest, DIGEST_A);
        assert_int_equal(result.digests[a].iterations, 2);
        assert_int_equal(result.digests[a].first_iteration, other == 0);
        assert_string_equal(result.digests[b].digest, DIGEST_B);
        assert_int_equal(result.digests[b].iterations, 1);
        assert_int_equal(result.digests[b].first_iteration, other);
        run_judge_release(&judge);
    }
}

static void test_the_last_libraries_count(void **state)
{
    json_t *events[EVENTS];
    struct run_judge judge;
    struct run_result result;
    struct run_record run;

    (void)state;
    judge_init(&judge);
    good_events(events);
    json_object_set_new(events[4], "libraries",
                        parse_json("[{\"path\":\"/lib/late.so\",\"build_id\":null}]"));
    run = judge_finish(&judge, events, EVENTS, &good_exit, &result);
    assert_int_equal(run.outcome, OUTCOME_COMPLETED);
    assert_string_equal(result.libraries_json,
                        "[{\"path\":\"/lib/late.so\",\"build_id\":null}]");
    run_judge_release(&judge);
}

static void test_telemetry_is_kept(void **state)
{
    json_t *events[EVENTS];
    struct run_judge judge;
    struct run_result result;
    struct run_record run;

    (void)state;
    judge_init(&judge);
    good_events(events);
    json_object_set_new(
        events[0], "telemetry",
        parse_json("{ \"watts\": 118.5, \"why\": [\"idle\"], \"ok\": true }"));
    json_object_set_new(events[4], "telemetry", json_null());
    run = judge_finish(&judge, events, EVENTS, &good_exit, &result);
    assert_int_equal(run.outcome, OUTCOME_COMPLETED);
    assert_string_equal(result.telemetry_start,
                        "{\"watts\":118.5,\"why\":[\"idle\"],\"ok\":true}");
    assert_null(result.telemetry_end);
    assert_null(strstr(result.environment_json, "watts"));
    run_judge_release(&judge);
}

/* One byte more than is allowed. */
static void test_telemetry_is_bounded(void **state)
{
    static const char frame[] = "{\"cause\":\"\"}";

    (void)state;
    for (int more = 0; more < 2; more++) {
        char text[RUN_TELEMETRY_MAX];
        size_t length = RUN_TELEMETRY_MAX - strlen(frame) + (size_t)more;
        json_t *events[EVENTS];
        struct run_judge judge;
        struct run_result result;
        struct run_record run;

        memset(text, 'x', length);
        judge_init(&judge);
        good_events(events);
        json_object_set_new(events[4], "telemetry",
                            json_pack("{s:s%}", "cause", text, length));
        run = judge_finish(&judge, events, EVENTS, &good_exit, &result);
        assert_int_equal(run.outcome, more ? OUTCOME_INVALID : OUTCOME_COMPLETED);
        assert_int_equal(result.telemetry_end ? strlen(result.telemetry_end) : 0,
                         more ? 0 : RUN_TELEMETRY_MAX);
        run_judge_release(&judge);
    }
}

static void test_trace(void **state)
{
    json_t *events[EVENTS];
    json_t *order[EVENTS + 3];
    struct run_judge judge;
    struct run_result result;
    struct run_record run;
    struct digest out;

    (void)state;
    judge_init(&judge);
    good_events(events);
    json_object_set_new(events[4], "probes_dropped", json_integer(17));
    order[0] = events[0];
    order[1] = parse_json(probe_text);
    order[2] = parse_json(probes_text);
    json_object_set_new(order[2], "i", json_integer(2));
    json_object_set_new(order[2], "step", json_integer(9));
    order[3] = parse_json(probe_text);
    json_object_set_new(order[3], "name", json_string("loss"));
    memcpy(order + 4, events + 1, 4 * sizeof *order);
    run = judge_finish(&judge, order, EVENTS + 3, &good_exit, &result);
    assert_int_equal(run.outcome, OUTCOME_COMPLETED);
    assert_int_equal(result.trace->count, 3);
    assert_int_equal(result.trace->dropped, 17);
    assert_int_equal(result.trace->place_count, 2);
    assert_string_equal(trace_place_at(result.trace, 1), "conv1/dw");
    assert_string_equal(trace_place_at(result.trace, 2), "loss");
    assert_int_equal(result.trace->records[1].iteration, 2);
    assert_int_equal(result.trace->records[1].step, 9);
    assert_true(digest_parse(DIGEST_B, &out));
    assert_true(digest_equal(result.trace->records[0].out, out));
    assert_true(digest_parse(DIGEST_A, &out));
    assert_true(digest_equal(result.trace->records[0].in, out));
    run_judge_release(&judge);
}

/* Only a run whose machine is not usable may have no device. */
static void test_a_device_that_could_not_be_opened(void **state)
{
    static const struct {
        const char *outcome, *cause;
        enum outcome judged;
    } ends[] = {
        { "infra", "no GPU", OUTCOME_INFRA },
        { "unsupported", "device is 'unknown', 'cpu:host-a' was asked for",
          OUTCOME_INVALID },
        { "out_of_memory", "device is 'unknown', 'cpu:host-a' was asked for",
          OUTCOME_INVALID },
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(ends); i++) {
        json_t *events[EVENTS];
        struct run_judge judge;
        struct run_result result;
        struct run_record run;

        judge_init(&judge);
        good_events(events);
        json_object_set_new(events[0], "device", json_string("unknown"));
        json_object_set_new(events[4], "device", json_string("unknown"));
        json_object_set_new(events[4], "outcome", json_string(ends[i].outcome));
        json_object_set_new(events[4], "cause", json_string("no GPU"));
        run = judge_finish(&judge, events, EVENTS, &good_exit, &result);
        assert_int_equal(run.outcome, ends[i].judged);
        assert_string_equal(run.cause, ends[i].cause);
        run_judge_release(&judge);
    }
}

static void test_long_texts_are_cut_at_a_character(void **state)
{
    json_t *events[EVENTS], *cause = json_array();
    char text[1024];
    struct run_judge judge;
    struct run_result result;
    struct run_record run;

    (void)state;
    for (size_t i = 0; i + 3 < sizeof text; i += 3) {
        memcpy(text + i, "\xe2\x82\xac", 4);
    }
    judge_init(&judge);
    good_events(events);
    json_object_set_new(events[4], "outcome", json_string("infra"));
    json_object_set_new(events[4], "cause", json_string(text));
    run = judge_finish(&judge, events, EVENTS, &good_exit, &result);
    assert_int_equal(run.outcome, OUTCOME_INFRA);
    assert_int_equal(json_array_append_new(cause, json_string(run.cause)), 0);
    json_decref(cause);
    run_judge_release(&judge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_completed),
        cmocka_unit_test(test_every_algorithm_is_named),
        cmocka_unit_test(test_one_iteration_has_no_time),
        cmocka_unit_test(test_the_median_of_an_even_number),
        cmocka_unit_test(test_a_title_names_the_libraries),
        cmocka_unit_test(test_digests_are_counted),
        cmocka_unit_test(test_digests_are_in_the_order_of_iterations),
        cmocka_unit_test(test_the_last_libraries_count),
        cmocka_unit_test(test_telemetry_is_kept),
        cmocka_unit_test(test_telemetry_is_bounded),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_a_device_that_could_not_be_opened),
        cmocka_unit_test(test_long_texts_are_cut_at_a_character),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
