/* Which devices have to be screened, by what is known of them, and what it showed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/evidence/screening.h"

static const char hello[] =
    "{\"facts\":{\"kernel\":\"6.1\"},\"stacks\":[{\"name\":\"cuda\","
    "\"catalogue\":[{\"workload\":\"w\"}],"
    "\"probe\":{\"worker_build\":\"b\",\"versions\":{\"driver\":\"580\"},"
    "\"devices\":["
    "{\"id\":\"GPU-1\",\"model\":\"H100\",\"attributes\":{\"vbios\":\"96\",\"pci_bus_"
    "id\":"
    "\"slot1\",\"health\":{\"ecc\":0}}},"
    "{\"id\":\"GPU-2\",\"model\":\"H100\",\"attributes\":{\"vbios\":\"other\"}}]}}]}";

/* What hello says of DEVICE, with the first WHAT replaced by WITH.  New reference. */
static json_t *facts_of(const char *device, const char *what, const char *with)
{
    char text[2048];
    const char *at = strstr(hello, what);
    json_t *changed;
    json_t *before;
    json_t *facts;

    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - hello), hello, with,
             at + strlen(what));
    changed = json_loads(text, 0, NULL);
    assert_non_null(changed);
    before = json_deep_copy(changed);
    facts = screening_facts(changed, device);
    assert_true(json_equal(changed, before));
    json_decref(before);
    json_decref(changed);
    return facts;
}

/* Of GPU-1.  Caller frees. */
static char *facts_with(const char *what, const char *with)
{
    json_t *facts = facts_of("GPU-1", what, with);
    char *shown = json_dumps(facts, JSON_COMPACT | JSON_SORT_KEYS);

    json_decref(facts);
    return shown;
}

/* Why GPU-1 is screened that was first as hello says and is as FACTS now. */
static enum screening_reason judged(const char *facts, const char *host, int64_t away_ms,
                                    char *ret_words, size_t size)
{
    char *before = facts_with("580", "580");
    const struct screening_past past = { "a", before, 1000 };
    const struct screening_present present = { host, facts, 1000 + away_ms, 5000 };
    char *known;
    char *words;
    enum screening_reason reason = screening_judge(&past, &present, &known, &words);

    snprintf(ret_words, size, "%s", words);
    free(before);
    free(known);
    free(words);
    return reason;
}

static void test_what_changed_says_why(void **state)
{
    static const struct {
        const char *what, *with, *host;
        int64_t away_ms;
        enum screening_reason reason;
        const char *words;
    } cases[] = {
        { "580", "580", "a", 0, SCREENING_NOT, "" },
        { "580", "580", "a", 5000, SCREENING_NOT, "" },
        { "580", "580", "a", 5001, SCREENING_RETURNED, "" },
        { "\"ecc\":0", "\"ecc\":7", "a", 0, SCREENING_NOT, "" },
        { ",\"health\":{\"ecc\":0}", "", "a", 0, SCREENING_NOT, "" },
        { "\"vbios\":\"96\",", "", "a", 0, SCREENING_NOT, "" },
        { "\"other\"", "\"97\"", "a", 0, SCREENING_NOT, "" }, /* of another device */
        { "580", "590", "a", 0, SCREENING_UPGRADED, "driver 580 → 590 (stack cuda)" },
        { "580", "590", "a", 9999, SCREENING_UPGRADED, "driver 580 → 590 (stack cuda)" },
        { "6.1", "6.2", "a", 0, SCREENING_UPGRADED, "kernel 6.1 → 6.2" },
        { "96", "97", "a", 0, SCREENING_UPGRADED, "vbios 96 → 97 (device GPU-1)" },
        { "\"b\"", "\"c\"", "a", 0, SCREENING_UPGRADED,
          "worker_build b → c (stack cuda)" },
        { "slot1", "slot2", "a", 0, SCREENING_MOVED,
          "pci_bus_id slot1 → slot2 (device GPU-1)" },
        { "580", "580", "b", 0, SCREENING_MOVED, "host a → b" },
        { "580", "590", "b", 9999, SCREENING_MOVED,
          "host a → b, driver 580 → 590 (stack cuda)" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *facts = facts_with(cases[i].what, cases[i].with);
        char words[512];

        assert_int_equal(
            judged(facts, cases[i].host, cases[i].away_ms, words, sizeof words),
            cases[i].reason);
        assert_string_equal(words, cases[i].words);
        free(facts);
    }
}

static void test_nothing_known_is_new(void **state)
{
    const struct screening_past past = { "", "", 0 };
    char *facts = facts_with("580", "580");
    const struct screening_present present = { "a", facts, 9000, 5000 };
    char fingerprint[DIGEST_TEXT_SIZE];
    char moved[DIGEST_TEXT_SIZE];
    char *known;
    char *words;

    (void)state;
    assert_int_equal(screening_judge(&past, &present, &known, &words), SCREENING_NEW);
    assert_string_equal(words, "");
    assert_string_equal(known, facts);
    screening_fingerprint("a", known, fingerprint);
    screening_fingerprint("b", known, moved);
    assert_string_not_equal(fingerprint, moved);
    free(facts);
    free(known);
    free(words);
}

#define OTHER_STACK                                                                      \
    "[{\"name\":\"external\",\"catalogue\":[{\"workload\":\"own\",\"survey\":%s}],"      \
    "\"probe\":{\"versions\":{\"own\":\"%s\"},\"devices\":[{\"id\":\"GPU-1\"}]}},"

/* A further stack, and an edit of a command, count where a survey measures it. */
static void test_what_no_survey_measures_is_no_change(void **state)
{
    static const char *const surveyed[] = { "false", "true" };

    (void)state;
    for (int i = 0; i < 2; i++) {
        char with[512];
        char words[512];
        char *facts;

        snprintf(with, sizeof with, "\"stacks\":" OTHER_STACK, surveyed[i], "1");
        facts = facts_with("\"stacks\":[", with);
        assert_int_equal(judged(facts, "a", 0, words, sizeof words),
                         i == 0 ? SCREENING_NOT : SCREENING_UPGRADED);
        assert_int_equal(strstr(words, "own none → 1 (stack external)") != NULL, i == 1);
        free(facts);
    }
}

/* Each device has the stacks that serve it and its own attributes, whatever else is on
 * its host. */
static void test_a_device_has_what_serves_it(void **state)
{
    static const char further[] =
        "\"stacks\":[{\"name\":\"rocm\",\"catalogue\":[{\"workload\":\"w\"}],"
        "\"probe\":{\"versions\":{\"driver\":\"6\"},\"devices\":[{\"id\":\"GPU-9\"}]}},";
    static const struct {
        const char *device, *stack, *driver, *vbios; /* NULL: it has none */
    } cases[] = {
        { "GPU-1", "cuda", "580", "96" },
        { "GPU-2", "cuda", "580", "other" },
        { "GPU-9", "rocm", "6", NULL },
        { "GPU-7", NULL, NULL, NULL },
    };
    char words[512];
    char *facts = facts_with("\"stacks\":[", further);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *of = facts_of(cases[i].device, "\"stacks\":[", further);
        json_t *stacks = json_object_get(of, "stacks");
        json_t *devices = json_object_get(of, "devices");
        const char *driver = json_string_value(
            json_object_get(json_object_get(stacks, cases[i].stack), "driver"));
        const char *vbios = json_string_value(
            json_object_get(json_object_get(devices, cases[i].device), "vbios"));

        assert_int_equal(json_object_size(stacks), cases[i].stack != NULL);
        assert_int_equal(json_object_size(devices), cases[i].stack != NULL);
        assert_string_equal(driver ? driver : "", cases[i].driver ? cases[i].driver : "");
        assert_string_equal(vbios ? vbios : "", cases[i].vbios ? cases[i].vbios : "");
        json_decref(of);
    }
    assert_int_equal(judged(facts, "a", 0, words, sizeof words), SCREENING_NOT);
    assert_string_equal(words, "");
    free(facts);
}

/* Whether a stack has no workloads or does not tell them, the rest of it is known; no
 * catalogue is no catalogue of none. */
static void test_a_stack_without_workloads_is_known(void **state)
{
    static const char catalogue[] = "\"catalogue\":[{\"workload\":\"w\"}],";
    static const struct {
        const char *with, *count;
    } cases[] = {
        { catalogue, "1 (" },
        { "\"catalogue\":[],", "0 (" },
        { "", NULL },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *facts = facts_of("GPU-1", catalogue, cases[i].with);
        json_t *stack = json_object_get(json_object_get(facts, "stacks"), "cuda");
        const char *count = json_string_value(json_object_get(stack, "workloads"));

        assert_string_equal(json_string_value(json_object_get(stack, "driver")), "580");
        assert_string_equal(json_string_value(json_object_get(stack, "worker_build")),
                            "b");
        assert_int_equal(count != NULL, cases[i].count != NULL);
        if (cases[i].count) {
            assert_memory_equal(count, cases[i].count, strlen(cases[i].count));
        }
        json_decref(facts);
    }
}

/* What a driver did not tell for once comes back as it was. */
static void test_a_value_that_was_not_told_is_kept(void **state)
{
    char *all = facts_with("580", "580");
    char *fewer = facts_with("\"vbios\":\"96\",", "");
    const struct screening_past past = { "a", all, 1 };
    const struct screening_present present = { "a", fewer, 2, 0 };
    char *known;
    char *words;

    (void)state;
    assert_int_equal(screening_judge(&past, &present, &known, &words), SCREENING_NOT);
    assert_string_equal(known, all);
    free(all);
    free(fewer);
    free(known);
    free(words);
}

/* Nor is what a stack does not tell for once a change of it: a library that could not be
 * asked, a whole stack.  It comes back as it was, or other. */
static void test_what_a_stack_does_not_tell_is_kept(void **state)
{
    char *all = facts_with("580", "580");
    char *fewer = facts_with("\"driver\":\"580\"", "");
    char *other = facts_with("580", "590");
    char *known;
    char *again;
    char *words;

    (void)state;
    assert_null(strstr(fewer, "driver"));
    assert_int_equal(screening_judge(&(struct screening_past){ "a", all, 1 },
                                     &(struct screening_present){ "a", fewer, 2, 0 },
                                     &known, &words),
                     SCREENING_NOT);
    assert_string_equal(words, "");
    assert_string_equal(known, all);
    free(words);
    assert_int_equal(screening_judge(&(struct screening_past){ "a", known, 2 },
                                     &(struct screening_present){ "a", other, 3, 0 },
                                     &again, &words),
                     SCREENING_UPGRADED);
    assert_string_equal(words, "driver 580 → 590 (stack cuda)");
    free(words);
    free(again);
    /* Another host's silence is its own. */
    assert_int_equal(screening_judge(&(struct screening_past){ "a", all, 1 },
                                     &(struct screening_present){ "b", fewer, 2, 0 },
                                     &again, &words),
                     SCREENING_MOVED);
    assert_string_equal(again, fewer);
    free(words);
    free(again);
    free(known);
    free(all);
    free(fewer);
    free(other);
}

static void test_unknown_is_not_passed(void **state)
{
    static const struct {
        struct screening_counts counts;
        enum screening_outcome outcome;
        const char *words;
    } cases[] = {
        { { .cases = 3, .agrees = 3 }, SCREENING_PASSED, "3 of 3 cases agree" },
        { { .cases = 3, .agrees = 2, .varies = 1 },
          SCREENING_PASSED,
          "2 of 3 cases agree, 1 vary" },
        { { .cases = 3, .agrees = 2, .dissents = 1 },
          SCREENING_DISSENTS,
          "2 of 3 cases agree, 1 dissent from its equals" },
        { { .cases = 3, .agrees = 2, .dissents = 1, .failed = 1 },
          SCREENING_DISSENTS,
          "2 of 3 cases agree, 1 dissent from its equals, 1 failed" },
        { { .cases = 2, .agrees = 1, .undecided = 1 },
          SCREENING_INCONCLUSIVE,
          "1 of 2 cases agree, 1 differ, and what that means cannot be told" },
        { { .cases = 2, .agrees = 1, .failed = 1 },
          SCREENING_INCONCLUSIVE,
          "1 of 2 cases agree, 1 failed" },
        { { .cases = 2, .agrees = 1, .unmeasured = 1 },
          SCREENING_INCONCLUSIVE,
          "1 of 2 cases agree, 1 were not measured" },
        { { .cases = 2, .agrees = 1, .alone = 1 },
          SCREENING_INCONCLUSIVE,
          "1 of 2 cases agree, 1 were measured on no equal of it" },
        { { .cases = 1, .varies = 1 },
          SCREENING_INCONCLUSIVE,
          "0 of 1 cases agree, 1 vary" },
        { { .cases = 0 }, SCREENING_INCONCLUSIVE, "0 of 0 cases agree" },
    };
    char words[SCREENING_WORDS_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(screening_conclude(&cases[i].counts, words), cases[i].outcome);
        assert_string_equal(words, cases[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_changed_says_why),
        cmocka_unit_test(test_nothing_known_is_new),
        cmocka_unit_test(test_what_no_survey_measures_is_no_change),
        cmocka_unit_test(test_a_device_has_what_serves_it),
        cmocka_unit_test(test_a_stack_without_workloads_is_known),
        cmocka_unit_test(test_a_value_that_was_not_told_is_kept),
        cmocka_unit_test(test_what_a_stack_does_not_tell_is_kept),
        cmocka_unit_test(test_unknown_is_not_passed),
    };

    return cmocka_run_group_tests_name("screening", tests, NULL, NULL);
}
