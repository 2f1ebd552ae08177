/* What a run must say to be completed: every deviation, one by one, and any disorder. */
#include "daemon/run_fold.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/run_environment.h"
#include "workloads/instruments/digest.h"

#define INPUTS   "00112233445566778899aabbccddeeff"
#define DIGEST_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define DIGEST_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define ENVIRONMENT                                                                      \
    "{\"worker_build\":\"3f2a91c0dd\",\"threads\":2,\"model\":\"AMD EPYC "               \
    "9B14\",\"backend\":\"cpu\"}"

static const char start_text[] =
    "{\"event\":\"start\",\"v\":1,\"pid\":4711,\"workload\":\"conv_wgrad\",\"version\":1,"
    "\"variant\":\"ordered\",\"size\":\"small\",\"dtype\":\"float32\",\"seed\":\"7\","
    "\"iterations\":3,\"threads\":2,\"backend\":\"cpu\",\"device\":\"cpu:host-a\","
    "\"algorithm\":\"fixed tree\",\"claim\":null,\"input_digest\":\"" INPUTS
    "\","
    "\"environment\":" ENVIRONMENT
    ",\"libraries\":[{\"path\":\"/lib/libc.so.6\","
    "\"build_id\":null}],\"of_the_future\":true}";

static const char iteration_text[] =
    "{\"event\":\"iteration\",\"i\":0,\"digest\":\"" DIGEST_A
    "\","
    "\"weight_sum\":\"c0234c2400000000\",\"loss\":null,\"ms\":12.345,"
    "\"algorithm\":\"fixed tree\"}";

static const char end_text[] =
    "{\"event\":\"end\",\"outcome\":\"completed\",\"cause\":null,\"iterations\":3,"
    "\"elements\":4608,\"bytes_hashed\":55296,\"device\":\"cpu:host-a\","
    "\"input_digest\":\"" INPUTS "\"}";

static const char probe_text[] =
    "{\"event\":\"probe\",\"step\":0,\"name\":\"conv1/dw\","
    "\"in\":\"" DIGEST_A "\",\"out\":\"" DIGEST_B "\"}";

static const char probes_text[] =
    "{\"event\":\"probes\",\"i\":0,\"step\":0,\"records\":[[\"conv1/dw\",\"" DIGEST_A
    "\",\"" DIGEST_B "\"]]}";

static const struct run_exit good_exit = { .exit_code = 0,
                                           .reason = EXIT_REASON_EXITED,
                                           .wall_ms = 812.5,
                                           .max_rss_kb = 14000,
                                           .log = "hello\n",
                                           .log_length = 6,
                                           .log_bytes = 6 };

enum { EVENTS = 5 }; /* start, three iterations, end */

static json_t *parse(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);

    assert_non_null(json);
    return json;
}

/* The events of a run in which nothing is wrong. */
static void good_events(json_t *ret_events[EVENTS])
{
    ret_events[0] = parse(start_text);
    for (int i = 0; i < 3; i++) {
        ret_events[1 + i] = parse(iteration_text);
        json_object_set_new(ret_events[1 + i], "i", json_integer(i));
        json_object_set_new(ret_events[1 + i], "ms", json_real(10.5 + i));
    }
    ret_events[4] = parse(end_text);
}

static void init(struct run_fold *fold)
{
    struct case_key key = { "conv_wgrad", 1, "ordered", "small", "float32", 7 };

    run_fold_init(fold, &key, "cpu:host-a", 3);
}

/* Feeds COUNT events (taking them over) and ends the run.  FOLD is released by caller. */
static struct run finish(struct run_fold *fold, json_t **events, int count,
                         const struct run_exit *exit, struct run_result *ret_result)
{
    struct run run;

    for (int i = 0; i < count; i++) {
        run_fold_event(fold, events[i]);
        json_decref(events[i]);
    }
    run_fold_finish(fold, exit, &run, ret_result);
    return run;
}

static void test_completed(void **state)
{
    json_t *events[EVENTS];
    struct run_fold fold;
    struct run_result result;
    struct run run;
    char hex[DIGEST_HEX_SIZE];
    const char *canonical =
        "{\"backend\":\"cpu\",\"model\":\"AMD EPYC 9B14\","
        "\"threads\":2,\"worker_build\":\"3f2a91c0dd\"}";

    (void)state;
    init(&fold);
    good_events(events);
    run = finish(&fold, events, EVENTS, &good_exit, &result);
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
    assert_int_equal(run.min_ns, 10500000);
    assert_int_equal(run.median_ns, 11500000);
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
    run_fold_release(&fold);
}

static void test_a_title_names_the_libraries(void **state)
{
    json_t *environment = parse(
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

/* A run that was asked for OPTIONS and says SAID, JSON or NULL for nothing. */
static struct run under(const char *options, const char *said)
{
    json_t *events[EVENTS];
    struct run_fold fold;
    struct run_result result;
    struct run run;

    init(&fold);
    run_fold_options(&fold, options);
    good_events(events);
    if (said) {
        json_object_set_new(events[0], "circumstances", parse(said));
    }
    run = finish(&fold, events, EVENTS, &good_exit, &result);
    run_fold_release(&fold);
    return run;
}

static void refuse_circumstances(const char *options, const char *said, const char *cause)
{
    struct run run = under(options, said);

    assert_int_equal(run.outcome, OUTCOME_INVALID);
    if (!strstr(run.cause, cause)) {
        fail_msg("wanted '%s' in '%s'", cause, run.cause);
    }
}

static void test_circumstances_are_those_that_were_asked_for(void **state)
{
    static const char all[] =
        "{\"allocation-jitter\":\"random\",\"contention\":4,"
        "\"memory-poison\":\"0badcafe\"}";
    struct run run;

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
    refuse_circumstances("", "{\"contention\":0}", "no number of load processes");
    refuse_circumstances("", "{\"contention\":\"3\"}", "no number of load processes");
    refuse_circumstances("", "[]", "circumstances is not an object");
    refuse_circumstances("{\"memory-poison\":\"random\"}", "{}", "is none, random was");
    refuse_circumstances("{\"memory-poison\":\"00000001\"}",
                         "{\"memory_poison\":\"00000002\"}", "00000001 was asked for");
    refuse_circumstances("", "{\"allocation_jitter\":\"1\"}", "none was asked for");
    refuse_circumstances("", "{\"allocation_jitter\":1}", "is not text");
}

static void test_digests_are_counted(void **state)
{
    json_t *events[EVENTS];
    struct run_fold fold;
    struct run_result result;
    struct run run;

    (void)state;
    init(&fold);
    good_events(events);
    json_object_set_new(events[1], "digest", json_string(DIGEST_B));
    json_object_set_new(events[3], "loss", json_string("3ff0000000000000"));
    json_object_set_new(events[3], "weight_sum", json_string("0000000000000001"));
    run = finish(&fold, events, EVENTS, &good_exit, &result);
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
    run_fold_release(&fold);
}

/* One field of one event is set to VALUE (JSON), or removed if that is NULL. */
struct change {
    int event;
    const char *field, *value, *cause;
};

static void check_change(const struct change *change)
{
    json_t *events[EVENTS];
    struct run_fold fold;
    struct run_result result;
    struct run run;

    init(&fold);
    good_events(events);
    if (change->value) {
        json_object_set_new(events[change->event], change->field,
                            json_loads(change->value, JSON_DECODE_ANY, NULL));
    } else {
        json_object_del(events[change->event], change->field);
    }
    run = finish(&fold, events, EVENTS, &good_exit, &result);
    if (run.outcome != OUTCOME_INVALID || !strstr(run.cause, change->cause)) {
        fail_msg("%s = %s: %s, '%s' instead of '%s'", change->field,
                 change->value ? change->value : "(none)", outcome_name(run.outcome),
                 run.cause, change->cause);
    }
    assert_int_equal(result.digest_count, 0);
    assert_string_equal(run.digest, "");
    assert_string_equal(run.weight_sum, "");
    assert_int_equal(run.elements, 0);
    run_fold_release(&fold);
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
        { 0, "claim", "7", "claim" },
        { 0, "input_digest", "\"00\"", "input_digest" },
        { 0, "input_digest", "null", "start:" },
        { 0, "backend", "\"cuda\"", "environment.backend" },
        { 0, "threads", "3", "environment.threads" },
        { 0, "environment", "{}", "environment does not name" },
        { 0, "environment", "[]", "environment is not an object" },
        { 0, "environment", "{\"backend\":\"cpu\",\"model\":\"x\"}", "worker_build" },
        { 0, "environment", "{\"backend\":1.5}", "environment.backend" },
        { 0, "libraries", "{}", "libraries" },
        { 0, "libraries", "[{\"path\":1,\"build_id\":null}]", "libraries[0]" },
        { 0, "telemetry", "[]", "start: telemetry is not an object" },
        { 0, "telemetry", "true", "start: telemetry is not an object" },
        { 0, "telemetry", "{\"gpu\":{}}", "telemetry.gpu is no string" },
        { 0, "telemetry", "{\"gpu\":null}", "telemetry.gpu is no string" },
        { 4, "telemetry", "{\"a\":[\"x\",1]}", "end: telemetry.a is no string" },
        { 4, "telemetry", "\"hot\"", "end: telemetry is not an object" },
        { 4, "probes_dropped", "-1", "end: probes_dropped" },
        { 4, "probes_dropped", "9007199254740993", "end: probes_dropped" },
        { 4, "probes_dropped", "\"1\"", "end: probes_dropped is not a whole number" },
        { 0, "event", "\"begin\"", "iteration before start" },
        { 1, "i", "1", "iteration 1 came where 0" },
        { 2, "i", "0", "iteration 0 came where 1" },
        { 2, "i", "\"1\"", "iteration 1:" },
        { 3, "i", "-1", "iteration -1 came" },
        { 1, "digest", "\"aaaa\"", "digest is not 32 hex" },
        { 1, "digest", "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"", "digest is not 32" },
        { 1, "digest", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"", "digest is not 32" },
        { 1, "digest", "7", "iteration 0:" },
        { 3, "weight_sum", "\"xyz\"", "weight_sum is not 16" },
        { 3, "weight_sum", "null", "iteration 2:" },
        { 3, "weight_sum", "\"7ff8000000000000\"", "weight_sum is NaN" },
        { 3, "weight_sum", "\"fff0000000000001\"", "weight_sum is NaN" },
        { 3, "loss", "\"7ff8000000000000\"", "loss is NaN" },
        { 3, "loss", "1.0", "loss" },
        { 3, "loss", "\"1.0\"", "loss is not 16" },
        { 3, "ms", "-1", "ms is not a duration" },
        { 3, "ms", "1e300", "ms is not a duration" },
        { 3, "ms", "null", "iteration 2:" },
        { 3, "event", "7", "a line without an event" },
        { 4, "libraries", "{}", "end: libraries is not an array" },
        { 4, "libraries", "[{\"path\":\"/x\"}]", "end: libraries[0]" },
        { 4, "outcome", "\"timeout\"", "no outcome that a worker can claim" },
        { 4, "outcome", "\"lost\"", "no outcome that a worker can claim" },
        { 4, "outcome", "\"fine\"", "no outcome that a worker can claim" },
        { 4, "outcome", "\"unsupported\"", "without a cause" },
        { 4, "outcome", "\"out_of_memory\"", "without a cause" },
        { 4, "outcome", "\"infra\"", "without a cause" },
        { 4, "iterations", "2", "end counts 2" },
        { 4, "iterations", "4", "end counts 4" },
        { 4, "elements", "0", "no proof of work" },
        { 4, "elements", "-1", "no proof of work" },
        { 4, "bytes_hashed", "0", "no proof of work" },
        { 4, "device", "\"cpu:host-b\"", "device at the end" },
        { 4, "input_digest", "\"" DIGEST_A "\"", "the inputs changed" },
        { 4, "input_digest", "\"\"", "input_digest" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        check_change(&changes[i]);
    }
}

static void test_the_last_libraries_count(void **state)
{
    json_t *events[EVENTS];
    struct run_fold fold;
    struct run_result result;
    struct run run;

    (void)state;
    init(&fold);
    good_events(events);
    json_object_set_new(events[4], "libraries",
                        parse("[{\"path\":\"/lib/late.so\",\"build_id\":null}]"));
    run = finish(&fold, events, EVENTS, &good_exit, &result);
    assert_int_equal(run.outcome, OUTCOME_COMPLETED);
    assert_string_equal(result.libraries_json,
                        "[{\"path\":\"/lib/late.so\",\"build_id\":null}]");
    run_fold_release(&fold);
}

static void test_telemetry_is_kept(void **state)
{
    json_t *events[EVENTS];
    struct run_fold fold;
    struct run_result result;
    struct run run;

    (void)state;
    init(&fold);
    good_events(events);
    json_object_set_new(events[0], "telemetry",
                        parse("{ \"watts\": 118.5, \"why\": [\"idle\"], \"ok\": true }"));
    json_object_set_new(events[4], "telemetry", json_null());
    run = finish(&fold, events, EVENTS, &good_exit, &result);
    assert_int_equal(run.outcome, OUTCOME_COMPLETED);
    assert_string_equal(result.telemetry_start,
                        "{\"watts\":118.5,\"why\":[\"idle\"],\"ok\":true}");
    assert_null(result.telemetry_end);
    assert_null(strstr(result.environment_json, "watts"));
    run_fold_release(&fold);
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
        struct run_fold fold;
        struct run_result result;
        struct run run;

        memset(text, 'x', length);
        init(&fold);
        good_events(events);
        json_object_set_new(events[4], "telemetry",
                            json_pack("{s:s%}", "cause", text, length));
        run = finish(&fold, events, EVENTS, &good_exit, &result);
        assert_int_equal(run.outcome, more ? OUTCOME_INVALID : OUTCOME_COMPLETED);
        assert_int_equal(result.telemetry_end ? strlen(result.telemetry_end) : 0,
                         more ? 0 : RUN_TELEMETRY_MAX);
        run_fold_release(&fold);
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

/* The events of a good run, as indices; 'p' a probe, 'P' a batch of
 * them, 't' and 's' the pieces of a tensor, 'B' and 'T' malformed ones, 'u' one of
 * unknown type, 'U' unknown without its type. */
struct order {
    const char *events;
    enum outcome outcome;
    const char *cause;
};

/* Of six bytes. */
static json_t *tensor_piece(int offset, const char *data)
{
    return json_pack("{s:s,s:i,s:i,s:s,s:s,s:i,s:s,s:s,s:[i],s:i,s:i,s:i,s:s}", "event",
                     "tensor", "i", 0, "step", 3, "place", "conv1/dw", "role", "out",
                     "index", 0, "name", "y", "dtype", "uint8", "shape", 6, "bytes_total",
                     6, "captured_bytes", 6, "offset", offset, "data", data);
}

static void test_orders(void **state)
{
    static const struct order orders[] = {
        { "01234", OUTCOME_COMPLETED, "" },
        { "0p1p2p3p4", OUTCOME_COMPLETED, "" },
        { "0PpP1P2P34", OUTCOME_COMPLETED, "" },
        { "0B1234", OUTCOME_INVALID, "probes: " },
        { "0T1234", OUTCOME_INVALID, "tensor: " },
        { "0ts1234", OUTCOME_COMPLETED, "" },
        { "0t1234", OUTCOME_INVALID, "tensor: tensor 0 of 1 ended early" },
        { "0st1234", OUTCOME_INVALID, "tensor: not the next piece" },
        { "0tsts1234", OUTCOME_INVALID, "tensor: not the next piece" },
        { "P01234", OUTCOME_INVALID, "probes before start" },
        { "u01u234", OUTCOME_COMPLETED, "" },
        { "", OUTCOME_CRASHED, "without an end event" },
        { "0", OUTCOME_CRASHED, "without an end event" },
        { "0123", OUTCOME_CRASHED, "without an end event" },
        { "1234", OUTCOME_INVALID, "iteration before start" },
        { "4", OUTCOME_INVALID, "end before start" },
        { "p01234", OUTCOME_INVALID, "probe before start" },
        { "10234", OUTCOME_INVALID, "iteration before start" },
        { "001234", OUTCOME_INVALID, "a second start" },
        { "04", OUTCOME_INVALID, "0 of 3 iterations" },
        { "0124", OUTCOME_INVALID, "2 of 3 iterations" },
        { "02134", OUTCOME_INVALID, "iteration 1 came where 0" },
        { "011234", OUTCOME_INVALID, "iteration 0 came where 1" },
        { "012334", OUTCOME_INVALID, "more iterations than the 3" },
        { "012344", OUTCOME_INVALID, "an event after end" },
        { "01243", OUTCOME_INVALID, "2 of 3 iterations" },
        { "01234p", OUTCOME_INVALID, "an event after end" },
        { "01234u", OUTCOME_INVALID, "an event after end" },
        { "012340", OUTCOME_INVALID, "an event after end" },
        { "0U1234", OUTCOME_INVALID, "a line without an event" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        json_t *events[EVENTS], *order[32];
        int count = (int)strlen(orders[i].events);
        struct run_fold fold;
        struct run_result result;
        struct run run;

        init(&fold);
        good_events(events);
        for (int k = 0; k < count; k++) {
            char c = orders[i].events[k];

            order[k] = c == 'p'   ? parse(probe_text)
                       : c == 'P' ? parse(probes_text)
                       : c == 'B' ? parse("{\"event\":\"probes\",\"i\":0}")
                       : c == 'T' ? parse("{\"event\":\"tensor\",\"i\":0}")
                       : c == 't' ? tensor_piece(0, "AQID")
                       : c == 's' ? tensor_piece(3, "BAUG")
                       : c == 'u' ? parse("{\"event\":\"weather\"}")
                       : c == 'U' ? parse("{\"weather\":\"fine\"}")
                                  : json_incref(events[c - '0']);
        }
        run = finish(&fold, order, count, &good_exit, &result);
        assert_int_equal(result.tensor_count, strchr(orders[i].events, 't') != NULL);
        if (run.outcome != orders[i].outcome || !strstr(run.cause, orders[i].cause)) {
            fail_msg("%s: %s, '%s'", orders[i].events, outcome_name(run.outcome),
                     run.cause);
        }
        run_fold_release(&fold);
        for (int k = 0; k < EVENTS; k++) {
            json_decref(events[k]);
        }
    }
}

/* Another moment or place than the one that was asked for proves nothing of that. */
static void test_tensors_are_those_that_were_asked_for(void **state)
{
    static const struct {
        const char *options;
        enum outcome outcome;
    } cases[] = {
        { "{\"capture\":\"0:3:conv1/dw\"}", OUTCOME_COMPLETED },
        { "{\"capture\":\"0:4:conv1/dw\"}", OUTCOME_INVALID },
        { "{\"capture\":\"1:3:conv1/dw\"}", OUTCOME_INVALID },
        { "{\"capture\":\"0:3:conv1\"}", OUTCOME_INVALID },
        { "{\"probes\":1}", OUTCOME_COMPLETED },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *events[EVENTS + 2];
        struct run_fold fold;
        struct run_result result;
        struct run run;

        init(&fold);
        run_fold_options(&fold, cases[i].options);
        good_events(events + 2);
        events[0] = events[2];
        events[1] = tensor_piece(0, "AQID");
        events[2] = tensor_piece(3, "BAUG");
        run = finish(&fold, events, EVENTS + 2, &good_exit, &result);
        assert_int_equal(run.outcome, cases[i].outcome);
        if (run.outcome == OUTCOME_INVALID) {
            assert_non_null(
                strstr(run.cause, "tensor: what is captured is '0:3:conv1/dw'"));
        }
        run_fold_release(&fold);
    }
}

static void test_trace(void **state)
{
    json_t *events[EVENTS];
    json_t *order[EVENTS + 3];
    struct run_fold fold;
    struct run_result result;
    struct run run;
    struct digest out;

    (void)state;
    init(&fold);
    good_events(events);
    json_object_set_new(events[4], "probes_dropped", json_integer(17));
    order[0] = events[0];
    order[1] = parse(probe_text);
    order[2] = parse(probes_text);
    json_object_set_new(order[2], "i", json_integer(2));
    json_object_set_new(order[2], "step", json_integer(9));
    order[3] = parse(probe_text);
    json_object_set_new(order[3], "name", json_string("loss"));
    memcpy(order + 4, events + 1, 4 * sizeof *order);
    run = finish(&fold, order, EVENTS + 3, &good_exit, &result);
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
    run_fold_release(&fold);
}

/* What was seen until a run failed is kept. */
static void test_trace_of_a_run_that_fails(void **state)
{
    json_t *order[] = { parse(start_text), parse(probe_text), parse(probe_text) };
    struct run_fold fold;
    struct run_result result;
    struct run run;

    (void)state;
    init(&fold);
    json_object_set_new(order[2], "i", json_integer(3)); /* of 0, 1 and 2 */
    run = finish(&fold, order, 3, &good_exit, &result);
    assert_int_equal(run.outcome, OUTCOME_INVALID);
    assert_non_null(strstr(run.cause, "a probe in iteration 3 of 3"));
    assert_int_equal(result.trace->count, 1);
    run_fold_release(&fold);
    init(&fold);
    order[0] = parse(start_text);
    finish(&fold, order, 1, &good_exit, &result);
    assert_null(result.trace);
    run_fold_release(&fold);
}

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
        { { .reason = EXIT_REASON_STUCK, .exit_code = -1 }, "g", OUTCOME_INFRA, "stuck" },
        { { .signal = SIGSEGV, .exit_code = -1 }, "g", OUTCOME_CRASHED, "SIGSEGV" },
        { { .signal = SIGABRT, .exit_code = -1 }, "n", OUTCOME_CRASHED, "SIGABRT" },
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
    };

    (void)state;
    for (size_t i = 0; i < sizeof exits / sizeof *exits; i++) {
        json_t *events[EVENTS];
        int count = exits[i].what[0] == 'g' ? EVENTS : exits[i].what[0] == 's';
        struct run_fold fold;
        struct run_result result;
        struct run run;

        init(&fold);
        good_events(events);
        for (int k = count; k < EVENTS; k++) {
            json_decref(events[k]);
        }
        run = finish(&fold, events, count, &exits[i].exit, &result);
        assert_int_equal(run.outcome, exits[i].outcome);
        assert_non_null(strstr(run.cause, exits[i].cause));
        run_fold_release(&fold);
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
            struct run_fold fold;
            struct run_result result;
            struct run run;

            init(&fold);
            good_events(events);
            two[0] = json_incref(events[0]);
            two[1] = json_incref(events[4]);
            json_object_set_new(two[1], "outcome",
                                json_string(outcome_name(outcomes[i])));
            json_object_set_new(two[1], "cause", json_string("because"));
            json_object_set_new(two[1], "elements", json_integer(0));
            run = finish(&fold, two, 2, &exit, &result);
            assert_int_equal(run.outcome, code ? OUTCOME_INVALID : outcomes[i]);
            assert_string_equal(run.cause,
                                code ? "exit status 1 after the end event" : "because");
            run_fold_release(&fold);
            for (int k = 0; k < EVENTS; k++) {
                json_decref(events[k]);
            }
        }
    }
}

static void test_garbage_anywhere_is_invalid(void **state)
{
    (void)state;
    for (int at = 0; at <= EVENTS; at++) {
        json_t *events[EVENTS];
        struct run_fold fold;
        struct run_result result;
        struct run run;

        init(&fold);
        good_events(events);
        for (int i = 0; i <= EVENTS; i++) {
            if (i == at) {
                run_fold_garbage(&fold, "line 3: not JSON");
            }
            if (i < EVENTS) {
                run_fold_event(&fold, events[i]);
                json_decref(events[i]);
            }
        }
        run_fold_finish(&fold, &good_exit, &run, &result);
        assert_int_equal(run.outcome, OUTCOME_INVALID);
        assert_string_equal(run.cause, "line 3: not JSON");
        run_fold_release(&fold);
    }
}

static uint64_t random_state = 0x9e3779b97f4a7c15u;

/* xorshift64* (Vigna 2016). */
static unsigned random_below(unsigned bound)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (unsigned)((random_state * 0x2545f4914f6cdd1du) >> 33) % bound;
}

/* Any sequence of good events, shuffled, repeated, dropped, mixed with unknown ones: it
 * completes if and only if it is the good one, unknown events before the end aside. */
static void test_disorder_never_completes(void **state)
{
    int completed = 0;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        json_t *events[EVENTS], *order[16];
        int count = 0, next = 0;
        bool good = true;
        struct run_fold fold;
        struct run_result result;
        struct run run;

        init(&fold);
        good_events(events);
        while (count < 16 && random_below(9)) {
            unsigned pick = random_below(3) ? (unsigned)next : random_below(EVENTS + 1);

            if (pick < EVENTS) {
                good = good && pick == (unsigned)next;
                next = (int)pick + 1;
                order[count++] = json_incref(events[pick]);
            } else {
                good = good && next != EVENTS; /* nothing may follow end */
                order[count++] = parse("{\"event\":\"weather\"}");
            }
        }
        good = good && next == EVENTS;
        run = finish(&fold, order, count, &good_exit, &result);
        assert_int_equal(run.outcome == OUTCOME_COMPLETED, good);
        completed += good;
        run_fold_release(&fold);
        for (int k = 0; k < EVENTS; k++) {
            json_decref(events[k]);
        }
    }
    assert_true(completed > 20);
}

static void test_zero_iterations_never_complete(void **state)
{
    struct case_key key = { "conv_wgrad", 1, "ordered", "small", "float32", 7 };
    json_t *events[EVENTS], *two[2];
    struct run_fold fold;
    struct run_result result;
    struct run run;

    (void)state;
    run_fold_init(&fold, &key, "cpu:host-a", 0);
    good_events(events);
    two[0] = json_incref(events[0]);
    two[1] = json_incref(events[4]);
    json_object_set_new(two[0], "iterations", json_integer(0));
    json_object_set_new(two[1], "iterations", json_integer(0));
    run = finish(&fold, two, 2, &good_exit, &result);
    assert_int_equal(run.outcome, OUTCOME_INVALID);
    run_fold_release(&fold);
    for (int k = 0; k < EVENTS; k++) {
        json_decref(events[k]);
    }
}

static void test_long_texts_are_cut_at_a_character(void **state)
{
    json_t *events[EVENTS], *cause = json_array();
    char text[1024];
    struct run_fold fold;
    struct run_result result;
    struct run run;

    (void)state;
    for (size_t i = 0; i + 3 < sizeof text; i += 3) {
        memcpy(text + i, "\xe2\x82\xac", 4);
    }
    init(&fold);
    good_events(events);
    json_object_set_new(events[4], "outcome", json_string("infra"));
    json_object_set_new(events[4], "cause", json_string(text));
    run = finish(&fold, events, EVENTS, &good_exit, &result);
    assert_int_equal(run.outcome, OUTCOME_INFRA);
    assert_int_equal(json_array_append_new(cause, json_string(run.cause)), 0);
    json_decref(cause);
    run_fold_release(&fold);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_completed),
        cmocka_unit_test(test_a_title_names_the_libraries),
        cmocka_unit_test(test_circumstances_are_those_that_were_asked_for),
        cmocka_unit_test(test_digests_are_counted),
        cmocka_unit_test(test_every_wrong_value),
        cmocka_unit_test(test_the_last_libraries_count),
        cmocka_unit_test(test_telemetry_is_kept),
        cmocka_unit_test(test_telemetry_is_bounded),
        cmocka_unit_test(test_every_field_is_required),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_tensors_are_those_that_were_asked_for),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_trace_of_a_run_that_fails),
        cmocka_unit_test(test_exits),
        cmocka_unit_test(test_early_ends),
        cmocka_unit_test(test_garbage_anywhere_is_invalid),
        cmocka_unit_test(test_disorder_never_completes),
        cmocka_unit_test(test_zero_iterations_never_complete),
        cmocka_unit_test(test_long_texts_are_cut_at_a_character),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
