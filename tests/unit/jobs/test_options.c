/* Options and circumstances: what is written is read again, byte for byte. */
#include <jansson.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "tests/unit/jobs/options_fixture.h"

static void test_texts_come_back(void **state)
{
    static const char *const texts[] = {
        "",
        "{\"contention\":4}",
        "{\"allocation-jitter\":\"random\",\"memory-poison\":\"0badcafe\"}",
        "{\"probe-names\":\"conv*/ü?\",\"probe-steps\":\"100-199\",\"probes\":10}",
        "{\"capture\":\"0:7:optimizer/w\",\"probes\":1}",
        "{\"shared-import\":1}",
        "{\"allocation-jitter\":\"18446744073709551615\",\"capture\":\"3:0:a:\\\"b\\\"\","
        "\"contention\":64,\"memory-poison\":\"random\",\"probe-names\":\"x\","
        "\"probe-steps\":\"0-1000000000000\",\"probes\":1000000000000}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct run_options options = options_of(texts[i]);

        check_options(&options, texts[i]);
    }
}

static void test_circumstances_come_back(void **state)
{
    static const char *const texts[] = {
        "",
        "{\"contention\":4}",
        "{\"allocation_jitter\":\"7\",\"contention\":1,\"memory_poison\":\"0badcafe\"}",
        ("{\"allocation_jitter\":\"18446744073709551615\",\"contention\":64,"
         "\"memory_poison\":\"0badcafe\",\"shared_import\":1}"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct run_circumstances circumstances;
        char text[RUN_CIRCUMSTANCES_SIZE];

        assert_true(run_circumstances_read(texts[i], &circumstances));
        assert_true(run_circumstances_write(&circumstances, text));
        assert_string_equal(text, texts[i]);
    }
}

#define LONGER_THAN_A_SEED                                                               \
    "{\"memory-poison\":"                                                                \
    "\"0123456789012345678901234567890123456789012345678901234567890123\"}"

static void test_other_texts_are_refused(void **state)
{
    static const char *const texts[] = {
        "{",
        "[]",
        "{\"contention\":0}",
        "{\"contention\":\"4\"}",
        "{\"memory-poison\":1}",
        "{\"probes\":-1}",
        (LONGER_THAN_A_SEED),
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct run_options options;

        if (run_options_read(texts[i], &options)) {
            fail_msg("%s was read", texts[i]);
        }
        check_options(&options, "");
    }
}

/* A text that would be cut is none. */
static void test_what_does_not_fit_is_not_written(void **state)
{
    struct run_options options = options_of(
        "{\"allocation-jitter\":\"18446744073709551615\",\"contention\":64,"
        "\"memory-poison\":\"0badcafe\",\"probe-steps\":\"0-1000000000000\","
        "\"probes\":1000000000000}");
    char text[RUN_OPTIONS_SIZE];

    (void)state;
    memset(options.probe_names, 'x', sizeof options.probe_names - 1);
    assert_true(run_options_write(&options, text));
    memset(options.capture, '"', sizeof options.capture - 1);
    assert_false(run_options_write(&options, text));
    assert_string_equal(text, "");
}

static void test_captures(void **state)
{
    char text[RUN_CAPTURE_SIZE];
    int32_t iteration;
    int64_t step;

    (void)state;
    run_capture_write(3, 1000000000000, "conv1/dw:0", text);
    assert_string_equal(text, "3:1000000000000:conv1/dw:0");
    assert_string_equal(run_capture_read(text, &iteration, &step), "conv1/dw:0");
    assert_int_equal(iteration, 3);
    assert_int_equal(step, 1000000000000);
    assert_null(run_capture_read("", &iteration, &step));
    assert_null(run_capture_read("conv1", &iteration, &step));
    assert_null(run_capture_read("0:conv1", &iteration, &step));
    assert_null(run_capture_read("0:1", &iteration, &step));
    assert_null(run_capture_read("x:1:conv1", &iteration, &step));
}

/* Nothing perturbs a challenge, and it costs no more imports than the runs beside it. */
static void test_a_challenge_is_asked_plainly(void **state)
{
    static const char *const texts[] = { "{\"contention\":4,\"probes\":1}", "",
                                         "{\"capture\":\"0:7:w\",\"shared-import\":1}",
                                         "{\"shared-import\":1}" };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i += 2) {
        struct run_options asked = options_of(texts[i]);
        struct run_options options = run_options_of_challenge(&asked);

        check_options(&options, texts[i + 1]);
    }
}

static void test_words(void **state)
{
    struct run_options options =
        options_of("{\"contention\":4,\"memory-poison\":\"random\",\"shared-import\":1}");
    struct buf words = BUF_INIT;

    (void)state;
    run_options_words(&options, &words);
    assert_string_equal(words.data,
                        "contention 4, memory-poison random, a shared import");
    buf_release(&words);
}

/* A circumstance is allowed by its name alone. */
static void test_circumstances_beyond_what_is_allowed(void **state)
{
    static const struct run_circumstances both = { .contention = 4,
                                                   .memory_poison = "random" };
    static const struct run_circumstances none = { .contention = 0 };
    static const struct {
        const char *allowed, *beyond;
    } cases[] = {
        { "[]", "contention" },
        { "[\"contention\"]", "memory_poison" },
        { "[\"memory_poison\"]", "contention" },
        { "[\"allocation_jitter\",\"memory_poison\",\"contention\"]", NULL },
        { "[1,null,\"memory_poison\"]", "contention" },
        { NULL, NULL },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *allowed = json_loads(cases[i].allowed, 0, NULL);
        const char *beyond = run_circumstances_beyond(&both, allowed);

        if (cases[i].beyond) {
            assert_string_equal(beyond, cases[i].beyond);
        } else {
            assert_null(beyond);
        }
        assert_null(run_circumstances_beyond(&none, allowed));
        json_decref(allowed);
    }
}

/* A worker that can fill memory with one byte says so by another name. */
static void test_patterns_of_four_equal_bytes(void **state)
{
    static const struct {
        const char *poison, *allowed, *beyond;
    } cases[] = {
        { "random", "[\"memory_poison_bytes\"]", NULL },
        { "a5a5a5a5", "[\"memory_poison_bytes\"]", NULL },
        { "a5a5a5a6", "[\"memory_poison_bytes\"]", "memory_poison" },
        { "5a5a5a5b", "[\"memory_poison_bytes\",\"memory_poison\"]", NULL },
        { "00000000", "[\"contention\",\"memory_poison_bytes\"]", NULL },
        { "0badcafe", "[\"memory_poison_bytes\"]", "memory_poison" },
        { "0badcafe", "[\"memory_poison\"]", NULL },
    };
    static const struct run_circumstances load = { .contention = 1 };
    json_t *bytes = json_loads("[\"memory_poison_bytes\"]", 0, NULL);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct run_circumstances asked = { .contention = 0 };
        json_t *allowed = json_loads(cases[i].allowed, 0, NULL);
        const char *beyond;

        copy_text(asked.memory_poison, sizeof asked.memory_poison, cases[i].poison);
        beyond = run_circumstances_beyond(&asked, allowed);
        assert_true(!beyond == !cases[i].beyond);
        assert_true(!beyond || strcmp(beyond, cases[i].beyond) == 0);
        json_decref(allowed);
    }
    assert_string_equal(run_circumstances_beyond(&load, bytes), "contention");
    json_decref(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_come_back),
        cmocka_unit_test(test_circumstances_come_back),
        cmocka_unit_test(test_other_texts_are_refused),
        cmocka_unit_test(test_what_does_not_fit_is_not_written),
        cmocka_unit_test(test_captures),
        cmocka_unit_test(test_a_challenge_is_asked_plainly),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_circumstances_beyond_what_is_allowed),
        cmocka_unit_test(test_patterns_of_four_equal_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
