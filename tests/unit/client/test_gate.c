/* The gate: what passes, what fails, and that everything else is unverified. */
#include "daemon/client/gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/array.h"

static const char ITEM[] =
    "{\"seq\":1,\"workload\":\"w\",\"version\":1,\"variant\":\"v\",\"size\":\"small\","
    "\"dtype\":\"float32\",\"seed\":\"1\",\"device\":\"cpu:a\",\"stack\":\"cpu\","
    "\"runs_wanted\":3,\"is_control\":false,\"given_up_reason\":null}";

static json_t *json_of(const char *text)
{
    json_t *value = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;

    assert_true(!text || value != NULL);
    return value;
}

/* What is said of ITEM, changed as CHANGES has it, with its RUNS (those of an array). */
static struct gate_case judged(const char *changes, const char *runs, const char *cell,
                               const char *drift, const struct gate_limits *limits)
{
    json_t *item = json_of(ITEM), *list = json_of(runs), *own = json_of(cell),
           *between = json_of(drift), *change = json_of(changes), *run;
    struct gate_runs *all = NULL;
    struct gate_case one;
    int count = 0;
    size_t i;

    json_object_update(item, change);
    json_array_foreach(list, i, run)
    {
        gate_add_run(&all, &count, run);
    }
    one = gate_judge(item, count ? &all[0] : NULL, own, between, limits);
    assert_string_equal(one.workload, "w");
    one.workload = NULL; /* the item's */
    free(all);
    json_decref(item);
    json_decref(list);
    json_decref(own);
    json_decref(between);
    json_decref(change);
    return one;
}

#define RUN(outcome, digest, distinct)                                                   \
    "{\"item\":1,\"cell\":7,\"environment\":\"e\",\"outcome\":\"" outcome                \
    "\",\"cause\":\"why\",\"digest\":\"" digest "\",\"distinct_digests\":" distinct "}"
#define SAME          RUN("completed", "a", "1")
#define THREE         "[" SAME "," SAME "," SAME "]"
#define CELL(verdict) "{\"verdict\":\"" verdict "\",\"reason\":\"as it says\"}"

static void test_what_is_said_of_a_case(void **state)
{
    static const struct gate_limits none = { NULL, 0 };
    static const struct {
        const char *runs, *cell;
        enum gate_result result;
        const char *words;
    } cases[] = {
        { THREE, CELL("reproducible"), GATE_EQUAL, "as it says" },
        { THREE, CELL("varies"), GATE_DIFFERENT, "varies: as it says" },
        { THREE, CELL("failing"), GATE_DIFFERENT, "failing: as it says" },
        { THREE, CELL("devices_disagree"), GATE_DIFFERENT,
          "devices_disagree: as it says" },
        { THREE, CELL("inconclusive"), GATE_UNVERIFIED, "inconclusive: as it says" },
        { THREE, CELL("stale"), GATE_UNVERIFIED, "stale: as it says" },
        { THREE, CELL("unmeasured"), GATE_UNVERIFIED, "unmeasured: as it says" },
        { THREE, CELL("of tomorrow"), GATE_UNVERIFIED, "of tomorrow: as it says" },
        { THREE, "{}", GATE_UNVERIFIED, "no cell has its runs" },
        { THREE, NULL, GATE_UNVERIFIED, "no cell has its runs" },
        { "[" SAME "," SAME "," RUN("completed", "b", "1") "]", CELL("reproducible"),
          GATE_DIFFERENT, "its digests differ within 3 runs" },
        { "[" SAME "," SAME "," RUN("completed", "a", "2") "]", CELL("reproducible"),
          GATE_DIFFERENT, "its digests differ within 3 runs" },
        { "[" SAME "," SAME "," RUN("crashed", "", "0") "]", CELL("reproducible"),
          GATE_UNVERIFIED, "1 of 3 runs did not complete: crashed: why" },
        { "[" RUN("unsupported", "", "0") "]", CELL("unsupported"), GATE_UNVERIFIED,
          "1 of 1 runs did not complete: unsupported: why" },
        { "[" SAME "," SAME "]", CELL("reproducible"), GATE_UNVERIFIED,
          "2 of 3 runs were made" },
        { "[" RUN("completed", "", "1") "," RUN("completed", "",
                                                "1") "," RUN("completed", "", "1") "]",
          CELL("reproducible"), GATE_UNVERIFIED, "its runs have no digest" },
        { "[]", CELL("reproducible"), GATE_UNVERIFIED, "nothing was measured" },
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct gate_case one = judged("{}", cases[i].runs, cases[i].cell, NULL, &none);

        assert_int_equal(one.result, cases[i].result);
        assert_string_equal(one.words, cases[i].words);
        assert_string_equal(one.title, "w v (small, float32, seed 1) on cpu:a, cpu");
        gate_case_release(&one);
    }
}

static void test_one_run_shows_nothing(void **state)
{
    static const struct gate_limits none = { NULL, 0 };
    struct gate_case one =
        judged("{\"runs_wanted\":1}", "[" SAME "]", CELL("reproducible"), NULL, &none);

    (void)state;
    assert_int_equal(one.result, GATE_UNVERIFIED);
    gate_case_release(&one);
}

static void test_what_was_given_up_says_why(void **state)
{
    static const struct gate_limits none = { NULL, 0 };
    struct gate_case one =
        judged("{\"given_up_reason\":\"the device is gone\"}", "[]", NULL, NULL, &none);

    (void)state;
    assert_string_equal(one.words, "nothing was measured: the device is gone");
    gate_case_release(&one);
}

/* A control is no case to pass, unless what it computed is wrong. */
static void test_controls(void **state)
{
    static const struct gate_limits none = { NULL, 0 };
    static const struct {
        const char *cell;
        bool counts;
        enum gate_result result;
    } cases[] = { { CELL("varies"), false, GATE_EQUAL },
                  { CELL("inconclusive"), false, GATE_UNVERIFIED },
                  { CELL("failing"), true, GATE_DIFFERENT } };

    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct gate_case one =
            judged("{\"is_control\":true}", THREE, cases[i].cell, NULL, &none);
        struct gate_counts counts = gate_count(&one, 1, NULL);

        assert_int_equal(one.result, cases[i].result);
        assert_int_equal(counts.of[cases[i].result], cases[i].counts);
        gate_case_release(&one);
    }
}

#define DRIFT(kind, bits, proven)                                                        \
    "{\"kind\":\"" kind "\",\"bits\":" bits ",\"proven\":" proven                        \
    ",\"reason\":\"\",\"cost\":{\"median\":1.5}}"

static void test_against_another_environment(void **state)
{
    static const struct {
        const char *drift;
        enum gate_result result;
    } cases[] = {
        { DRIFT("same_bits", "\"same\"", "true"), GATE_EQUAL },
        { DRIFT("algorithm_changed", "\"same\"", "true"), GATE_EQUAL },
        { DRIFT("same_bits", "\"same\"", "false"), GATE_UNVERIFIED },
        { DRIFT("bits_changed", "\"changed\"", "false"), GATE_DIFFERENT },
        { DRIFT("verdict_changed", "\"changed\"", "false"), GATE_DIFFERENT },
        { DRIFT("varies_now", "null", "false"), GATE_DIFFERENT },
        { DRIFT("fails_now", "null", "false"), GATE_DIFFERENT },
        { DRIFT("devices_disagree_now", "null", "false"), GATE_DIFFERENT },
        { DRIFT("cannot_be_told_yet", "null", "false"), GATE_UNVERIFIED },
        { DRIFT("appeared", "null", "false"), GATE_UNVERIFIED },
        { NULL, GATE_UNVERIFIED },
    };
    static const struct gate_limits limits = { "last release", 0 };

    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct gate_case one =
            judged("{}", THREE, CELL("reproducible"), cases[i].drift, &limits);

        assert_int_equal(one.result, cases[i].result);
        assert_non_null(strstr(one.words, "last release"));
        gate_case_release(&one);
    }
}

static void test_cost(void **state)
{
    static const char costly[] =
        "{\"verdict\":\"reproducible\",\"reason\":\"\",\"cost\":"
        "{\"against\":\"race\",\"median\":1.5}}";
    static const struct {
        const char *cell, *drift;
        struct gate_limits limits;
        enum gate_result result;
        const char *words;
    } cases[] = {
        { costly,
          NULL,
          { NULL, 1.25 },
          GATE_DIFFERENT,
          "it takes 1.5 times as long as race, more than 1.25" },
        { costly, NULL, { NULL, 1.5 }, GATE_EQUAL, "" },
        { costly, NULL, { NULL, 0 }, GATE_EQUAL, "" },
        { CELL("reproducible"), NULL, { NULL, 1.25 }, GATE_UNVERIFIED, NULL },
        { CELL("reproducible"),
          DRIFT("same_bits", "\"same\"", "true"),
          { "old", 1.25 },
          GATE_DIFFERENT,
          "it takes 1.5 times as long as old, more than 1.25" },
        { costly,
          DRIFT("same_bits", "\"same\"", "true"),
          { "old", 1.5 },
          GATE_EQUAL,
          "; same bits as old" },
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct gate_case one =
            judged("{}", THREE, cases[i].cell, cases[i].drift, &cases[i].limits);

        assert_int_equal(one.result, cases[i].result);
        if (cases[i].words) {
            assert_string_equal(one.words, cases[i].words);
        }
        gate_case_release(&one);
    }
}

/* Runs of an item in two environments are two cases: the process was changed between. */
static void test_runs_by_environment(void **state)
{
    json_t *list = json_of(
        "[{\"item\":1,\"environment\":\"e\",\"outcome\":\"completed\","
        "\"digest\":\"a\",\"distinct_digests\":1},"
        "{\"item\":1,\"environment\":\"f\",\"outcome\":\"completed\","
        "\"digest\":\"b\",\"distinct_digests\":1},"
        "{\"item\":2,\"environment\":\"e\",\"outcome\":\"completed\","
        "\"digest\":\"b\",\"distinct_digests\":1}]");
    struct gate_runs *all = NULL;
    int count = 0;
    json_t *run;
    size_t i;

    (void)state;
    json_array_foreach(list, i, run)
    {
        gate_add_run(&all, &count, run);
    }
    assert_int_equal(count, 3);
    assert_int_equal(all[0].distinct, 1);
    free(all);
    json_decref(list);
}

static void test_the_case_of_a_drift(void **state)
{
    json_t *item = json_of(ITEM);
    json_t *drift = json_of(
        "{\"groups\":[{\"cases\":[{\"kind\":\"x\"}]},{\"cases\":["
        "{\"workload\":\"w\",\"version\":2,\"variant\":\"v\",\"size\":"
        "\"small\",\"dtype\":\"float32\",\"seed\":\"1\",\"kind\":\"old\"},"
        "{\"workload\":\"w\",\"version\":1,\"variant\":\"v\",\"size\":"
        "\"small\",\"dtype\":\"float32\",\"seed\":\"2\",\"kind\":\"no\"},"
        "{\"workload\":\"w\",\"version\":1,\"variant\":\"v\",\"size\":"
        "\"small\",\"dtype\":\"float32\",\"seed\":\"1\",\"kind\":\"it\"}"
        "]}]}");
    const json_t *one = gate_drift_case(drift, item);

    (void)state;
    assert_string_equal(json_string_value(json_object_get(one, "kind")), "it");
    json_object_set_new(item, "seed", json_string("3"));
    assert_null(gate_drift_case(drift, item));
    assert_null(gate_drift_case(NULL, item));
    json_decref(item);
    json_decref(drift);
}

static void test_the_whole(void **state)
{
    static const struct {
        int of[GATE_RESULTS];
        enum gate_result result;
    } cases[] = { { { 3, 0, 0 }, GATE_EQUAL },      { { 3, 1, 1 }, GATE_DIFFERENT },
                  { { 3, 0, 1 }, GATE_UNVERIFIED }, { { 0, 0, 0 }, GATE_UNVERIFIED },
                  { { 0, 1, 0 }, GATE_DIFFERENT },  { { 0, 0, 1 }, GATE_UNVERIFIED } };

    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct gate_counts counts;

        memcpy(counts.of, cases[i].of, sizeof counts.of);
        assert_int_equal(gate_conclude(&counts), cases[i].result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_said_of_a_case),
        cmocka_unit_test(test_one_run_shows_nothing),
        cmocka_unit_test(test_what_was_given_up_says_why),
        cmocka_unit_test(test_controls),
        cmocka_unit_test(test_against_another_environment),
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_runs_by_environment),
        cmocka_unit_test(test_the_case_of_a_drift),
        cmocka_unit_test(test_the_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
