/* What changed on a host, by what its agent says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/evidence/changes.h"

static json_t *facts_of(const char *text)
{
    json_t *hello = json_loads(text, 0, NULL);
    json_t *facts;

    assert_non_null(hello);
    facts = changes_facts(hello);
    json_decref(hello);
    return facts;
}

#define HELLO(kernel, driver, ecc, errors)                                               \
    "{\"facts\":{\"kernel\":\"" kernel                                                   \
    "\"},\"stacks\":[{\"name\":\"cuda\",\"probe\":{"                                     \
    "\"worker_build\":\"b\",\"versions\":{\"driver\":\"" driver                          \
    "\"},"                                                                               \
    "\"devices\":[{\"id\":\"GPU-1\",\"model\":\"H100\",\"attributes\":{\"ecc_"           \
    "mode\":" ecc ",\"health\":{\"errors\":" errors "}}}]}}]}"
static const char away[] =
    "{\"facts\":{},\"stacks\":[{\"name\":\"cuda\",\"probe\":null}]}";

/* FIRST, then SECOND, then THIRD (NULL: not): what the last of them changed. */
static void check(const char *first, const char *second, const char *third,
                  const char *expected)
{
    json_t *before = facts_of(first);
    json_t *changes = NULL;
    const char *const then[] = { second, third };
    char *text;

    for (int i = 0; i < 2 && then[i]; i++) {
        json_t *now = facts_of(then[i]);
        json_t *merged;

        json_decref(changes);
        changes = changes_compare(before, now, &merged);
        json_decref(before);
        json_decref(now);
        before = merged;
    }
    text = changes_text(changes);
    assert_string_equal(text, expected);
    free(text);
    json_decref(before);
    json_decref(changes);
}

static void test_what_changed_is_told(void **state)
{
    (void)state;
    check(HELLO("6.1", "550", "true", "0"), HELLO("6.1", "550", "true", "0"), NULL, "");
    check(HELLO("6.1", "550", "true", "0"), HELLO("6.2", "550", "true", "0"), NULL,
          "kernel 6.1 → 6.2");
    check(HELLO("6.1", "550", "true", "0"), HELLO("6.1", "560", "false", "0"), NULL,
          "driver 550 → 560 (stack cuda), ecc_mode true → false (device GPU-1)");
    check("{\"stacks\":[{\"name\":\"a\",\"settings\":{\"threads\":1},\"probe\":{}}]}",
          "{\"stacks\":[{\"name\":\"a\",\"settings\":{\"threads\":2},\"probe\":{}}]}",
          NULL, "threads 1 → 2 (stack a)");
}

static void test_models_and_builds(void **state)
{
    static const char old[] =
        "{\"stacks\":[{\"name\":\"a\",\"probe\":{\"worker_build\":\"1\",\"devices\":"
        "[{\"id\":\"cpu:a\",\"model\":\"EPYC\"}]}}]}";
    static const char new[] =
        "{\"stacks\":[{\"name\":\"a\",\"probe\":{\"worker_build\":\"2\",\"devices\":"
        "[{\"id\":\"cpu:a\",\"model\":\"Xeon\"}]}}]}";

    (void)state;
    check(old, new, NULL,
          "worker_build 1 → 2 (stack a), model EPYC → Xeon (device cpu:a)");
}

#define DEVICE(n, vbios, ecc)                                                            \
    "{\"id\":\"GPU-" n "\",\"attributes\":{\"vbios\":\"" vbios "\",\"ecc_mode\":" ecc "}}"
#define TWO_STACKS(driver, vbios, vbios4, ecc)                                           \
    "{\"stacks\":[{\"name\":\"a\",\"probe\":{\"versions\":{\"driver\":\"" driver           \
    "\"},\"devices\":[" DEVICE("1", vbios, ecc) "," DEVICE("2", vbios, "true") ","        \
    DEVICE("3", vbios, "true") "," DEVICE("4", vbios4, "true") "]}},{\"name\":\"b\","     \
    "\"probe\":{\"versions\":{\"driver\":\"" driver "\"}}}]}"

static void test_what_changed_alike_is_told_once(void **state)
{
    (void)state;
    check(TWO_STACKS("550", "96", "95", "true"), TWO_STACKS("560", "97", "97", "false"),
          NULL,
          "driver 550 → 560 (stacks a, b), vbios 96 → 97 (devices GPU-1, GPU-2, GPU-3),"
          " ecc_mode true → false (device GPU-1), vbios 95 → 97 (device GPU-4)");
}

static void test_counters_are_no_change(void **state)
{
    (void)state;
    check(HELLO("6.1", "550", "true", "0"), HELLO("6.1", "550", "true", "7"), NULL, "");
}

static void test_libraries_come_and_go(void **state)
{
    static const char without[] =
        "{\"stacks\":[{\"name\":\"a\",\"probe\":{\"versions\":{\"libc\":\"1\"}}}]}";
    static const char with[] =
        "{\"stacks\":[{\"name\":\"a\",\"probe\":{\"versions\":{"
        "\"libc\":\"1\",\"cudnn\":\"9\"}}}]}";

    (void)state;
    check(without, with, NULL, "cudnn none → 9 (stack a)");
    check(with, without, NULL, "cudnn 9 → none (stack a)");
    check(with, without, with, "cudnn none → 9 (stack a)");
}

/* What is away, or could not be asked, comes back as it was, or changed. */
static void test_what_was_away(void **state)
{
    (void)state;
    check(HELLO("6.1", "550", "true", "0"), away, NULL, "");
    check(HELLO("6.1", "550", "true", "0"), away, HELLO("6.1", "550", "true", "0"), "");
    check(HELLO("6.1", "550", "true", "0"), away, HELLO("6.1", "560", "true", "0"),
          "driver 550 → 560 (stack cuda)");
    check(HELLO("6.1", "550", "true", "0"), HELLO("6.1", "550", "null", "0"),
          HELLO("6.1", "550", "true", "0"), "");
}

/* Any worker may have written it. */
static void test_what_is_incomplete_says_nothing(void **state)
{
    static const char odd[] =
        "{\"stacks\":[{\"probe\":{\"worker_build\":\"x\"}},{\"name\":\"a\",\"probe\":{"
        "\"devices\":[{\"model\":\"nameless\"},{\"id\":\"GPU-1\",\"model\":7,"
        "\"attributes\":{\"slot\":[1]}},{\"id\":\"GPU-2\",\"model\":{}}]}}]}";
    json_t *facts = facts_of(odd);

    (void)state;
    assert_int_equal(json_object_size(json_object_get(facts, "stacks")), 1);
    assert_int_equal(json_object_size(json_object_get(facts, "devices")), 2);
    json_decref(facts);
    check(odd, odd, NULL, "");
}

static void test_texts(void **state)
{
    static const char old[] = "{\"host\":{\"kernel\":\"6.1\"}}";
    static const char new[] = "{\"host\":{\"kernel\":\"6.2\"}}";
    char *merged;
    char *words;
    char *changes = changes_compare_texts(old, new, &merged, &words);

    (void)state;
    assert_string_equal(changes,
                        "[{\"after\":\"6.2\",\"before\":\"6.1\",\"device\":null,"
                        "\"name\":\"kernel\",\"stack\":null}]");
    assert_string_equal(words, "kernel 6.1 → 6.2");
    free(changes);
    free(words);
    free(merged);
    assert_null(changes_compare_texts("", new, &merged, &words));
    assert_string_equal(words, "");
    assert_string_equal(merged,
                        "{\"devices\":{},\"host\":{\"kernel\":\"6.2\"},"
                        "\"stacks\":{}}");
    free(words);
    free(merged);
}

/* Only what is alike in all is told once. */
static void test_changes_that_are_not_alike(void **state)
{
    static const struct {
        const char *changes, *words;
    } cases[] = {
        { "[{\"name\":\"a\",\"before\":\"1\",\"after\":\"2\",\"stack\":null,\"device\":"
          "\"x\"},"
          "{\"name\":\"a\",\"before\":\"1\",\"after\":\"3\",\"stack\":null,\"device\":"
          "\"y\"}]",
          "a 1 → 2 (device x), a 1 → 3 (device y)" },
        { "[{\"name\":\"a\",\"before\":\"1\",\"after\":\"2\",\"stack\":null,\"device\":"
          "\"x\"},"
          "{\"name\":\"a\",\"before\":\"1\",\"after\":\"2\",\"stack\":\"s\",\"device\":"
          "null},"
          "{\"name\":\"a\",\"before\":\"1\",\"after\":\"2\",\"stack\":null,\"device\":"
          "null}]",
          "a 1 → 2 (device x), a 1 → 2 (stack s), a 1 → 2" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *changes = json_loads(cases[i].changes, 0, NULL);
        char *words = changes_text(changes);

        assert_string_equal(words, cases[i].words);
        free(words);
        json_decref(changes);
    }
}

static void test_the_first_word_is_no_change(void **state)
{
    (void)state;
    check("{}", HELLO("6.1", "550", "true", "0"), NULL, "");
    check("{\"stacks\":[]}", "{}", NULL, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_changed_is_told),
        cmocka_unit_test(test_models_and_builds),
        cmocka_unit_test(test_what_changed_alike_is_told_once),
        cmocka_unit_test(test_counters_are_no_change),
        cmocka_unit_test(test_libraries_come_and_go),
        cmocka_unit_test(test_what_was_away),
        cmocka_unit_test(test_what_is_incomplete_says_nothing),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_changes_that_are_not_alike),
        cmocka_unit_test(test_the_first_word_is_no_change),
    };

    return cmocka_run_group_tests_name("changes", tests, NULL, NULL);
}
