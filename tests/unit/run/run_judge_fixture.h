/* What tests of run_judge share: the events of a run in which nothing is wrong. */
#ifndef TESTS_UNIT_RUN_RUN_JUDGE_FIXTURE_H
#define TESTS_UNIT_RUN_RUN_JUDGE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/run/run_judge.h"

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

static inline json_t *parse_json(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);

    assert_non_null(json);
    return json;
}

/* The events of a run in which nothing is wrong. */
static inline void good_events(json_t *ret_events[EVENTS])
{
    ret_events[0] = parse_json(start_text);
    for (int i = 0; i < 3; i++) {
        ret_events[1 + i] = parse_json(iteration_text);
        json_object_set_new(ret_events[1 + i], "i", json_integer(i));
        json_object_set_new(ret_events[1 + i], "ms", json_real(10.5 + i));
    }
    ret_events[4] = parse_json(end_text);
}

static inline void judge_init(struct run_judge *judge)
{
    struct case_key key = { "conv_wgrad", 1, "ordered", "small", "float32", 7 };

    run_judge_init(judge, &key, "cpu:host-a", 3);
}

/* Feeds COUNT events (taking them over) and ends the run.  FOLD is released by caller. */
static inline struct run_record judge_finish(struct run_judge *judge, json_t **events,
                                             int count, const struct run_exit *exit,
                                             struct run_result *ret_result)
{
    struct run_record run;

    for (int i = 0; i < count; i++) {
        run_judge_event(judge, events[i]);
        json_decref(events[i]);
    }
    run_judge_finish(judge, exit, &run, ret_result);
    return run;
}

#endif
