/* Traces: records and bounds, names of places, globs. */
#include "daemon/trace/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct digest one = { 1, 2 }, two = { 3, 4 };

static void test_records_stay_in_order(void **state)
{
    struct trace t;

    (void)state;
    trace_init(&t);
    assert_int_equal(trace_find_place(&t, "loss"), -1);
    assert_true(trace_add(&t, 0, 5, "conv/forward", one, two));
    assert_true(trace_add(&t, 0, 5, "loss", two, one));
    assert_true(trace_add(&t, 1, 0, "conv/forward", one, one));
    assert_int_equal(t.count, 3);
    assert_int_equal(t.place_count, 2);
    assert_int_equal(trace_find_place(&t, "loss"), 1);
    assert_int_equal(t.records[2].place, 0);
    assert_int_equal(t.records[2].iteration, 1);
    assert_int_equal(t.records[1].step, 5);
    assert_true(digest_equal(t.records[1].in, two));
    assert_string_equal(trace_place_at(&t, 2), "conv/forward");
    trace_release(&t);
    assert_int_equal(t.count, 0);
    assert_null(t.records);
}

static void test_occurrences_are_counted_within_a_step(void **state)
{
    struct trace t;

    (void)state;
    trace_init(&t);
    for (int step = 0; step < 2; step++) {
        for (int i = 0; i < 3; i++) {
            trace_add(&t, 0, step, "cell", one, two);
            trace_add(&t, 0, step, "gate", one, two);
        }
    }
    trace_add(&t, 1, 1, "cell", one, two);
    assert_int_equal(trace_occurrence(&t, 0), 0);
    assert_int_equal(trace_occurrence(&t, 4), 2);
    assert_int_equal(trace_occurrence(&t, 6), 0);
    assert_int_equal(trace_occurrence(&t, 11), 2);
    assert_int_equal(trace_occurrence(&t, 12), 0);
    trace_release(&t);
}

static void test_many_places_are_found_again(void **state)
{
    struct trace t;
    char name[32];

    (void)state;
    trace_init(&t);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 5000; i++) {
            snprintf(name, sizeof name, "variable/%d/before", i);
            assert_true(trace_add(&t, 0, round, name, one, two));
        }
    }
    assert_int_equal(t.place_count, 5000);
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "variable/%d/before", i);
        assert_int_equal(trace_find_place(&t, name), i);
        assert_int_equal(t.records[5000 + i].place, i);
    }
    trace_release(&t);
}

static void test_what_is_beyond_the_bound_is_counted(void **state)
{
    struct trace t;

    (void)state;
    trace_init(&t);
    for (int i = 0; i < TRACE_RECORDS_MAX; i++) {
        assert_true(trace_add(&t, 0, i, "loss", one, two));
    }
    for (int i = 0; i < 7; i++) {
        assert_false(trace_add(&t, 0, TRACE_RECORDS_MAX + i, "loss", one, two));
    }
    assert_int_equal(t.count, TRACE_RECORDS_MAX);
    assert_int_equal(t.dropped, 7);
    trace_release(&t);
}

static void test_too_many_places_cut_the_trace(void **state)
{
    struct trace t;
    char name[32];

    (void)state;
    trace_init(&t);
    for (int i = 0; i < TRACE_PLACES_MAX; i++) {
        snprintf(name, sizeof name, "%d", i);
        assert_true(trace_add(&t, 0, 0, name, one, two));
    }
    assert_true(trace_add(&t, 0, 1, "0", one, two));
    assert_false(trace_add(&t, 0, 1, "another", one, two));
    assert_false(trace_add(&t, 0, 1, "0", one, two)); /* there would be a hole */
    assert_int_equal(t.count, TRACE_PLACES_MAX + 1);
    assert_int_equal(t.dropped, 2);
    trace_release(&t);
}

static void test_names(void **state)
{
    static const char *const good[] = { "a",           "conv1/forward",
                                        "π/ß",         "loss [3] ~",
                                        "日本",        "\xf0\x9f\x98\x80",
                                        "\xe2\x81\xaa" };
    static const char *const bad[] = { "",
                                       "a\tb",
                                       "a\nb",
                                       "\x7f",
                                       "\xc2\x80", /* C1 */
                                       "\xc0\xaf",
                                       "\xe0\x80\xaf",
                                       "\xed\xa0\x80", /* a surrogate */
                                       "\xf4\x90\x80\x80",
                                       "\xff",
                                       "\xe2\x82",
                                       "\xe2\x80\xae", /* overrides direction */
                                       "\xe2\x81\xa6", /* isolates it */
                                       "\xe2\x81\xa9",
                                       "\xe2\x80\xa8" };
    char name[TRACE_PLACE_MAX + 2];

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(trace_place_valid(good[i]));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (trace_place_valid(bad[i])) {
            fail_msg("name %zu is taken", i);
        }
    }
    memset(name, 'x', sizeof name);
    name[TRACE_PLACE_MAX + 1] = '\0';
    assert_false(trace_place_valid(name));
    name[TRACE_PLACE_MAX] = '\0';
    assert_true(trace_place_valid(name));
}

static void test_globs(void **state)
{
    static const struct {
        const char *glob, *place;
        bool matches;
    } cases[] = {
        { "", "", true },
        { "*", "", true },
        { "conv*", "conv1/forward", true },
        { "conv*", "aconv", false },
        { "*/dw", "conv/1/dw", true },
        { "*/dw", "conv/dw/x", false },
        { "c*v*d", "conv/forward", true },
        { "conv?/dw", "conv2/dw", true },
        { "conv?/dw", "conv/dw", false },
        { "?", "", false },
        { "a?", "a", false },
        { "?", "ß", true },
        { "??", "ß", false },
        { "*ab", "aab", true },
        { "a*b*c", "aXbXbXc", true },
        { "a[bc]", "ab", false }, /* nothing else is special */
        { "a[bc]", "a[bc]", true },
    };
    char long_name[TRACE_PLACE_MAX + 1];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (trace_place_matches(cases[i].glob, cases[i].place) != cases[i].matches) {
            fail_msg("'%s' and '%s'", cases[i].glob, cases[i].place);
        }
    }
    /* Exponential matchers never return from this. */
    memset(long_name, 'a', sizeof long_name);
    long_name[TRACE_PLACE_MAX] = '\0';
    assert_false(trace_place_matches("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", long_name));
}

static void test_roles(void **state)
{
    (void)state;
    assert_int_equal(trace_place_role("data/batch"), TRACE_ROLE_DATA);
    assert_int_equal(trace_place_role("rng/dropout"), TRACE_ROLE_RNG);
    assert_int_equal(trace_place_role("variable/w/before"), TRACE_ROLE_VARIABLE);
    assert_int_equal(trace_place_role("variable/conv/w/before"), TRACE_ROLE_VARIABLE);
    assert_int_equal(trace_place_role("variable/w/after"), TRACE_ROLE_OTHER);
    assert_int_equal(trace_place_role("variable/before"), TRACE_ROLE_OTHER);
    assert_int_equal(trace_place_role("variable/weights/after"), TRACE_ROLE_OTHER);
    assert_int_equal(trace_place_role("gradients/weights/before"), TRACE_ROLE_OTHER);
    assert_int_equal(trace_place_role("output/y"), TRACE_ROLE_OUTPUT);
    assert_int_equal(trace_place_role("data"), TRACE_ROLE_OTHER);
    assert_int_equal(trace_place_role("loss"), TRACE_ROLE_OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_stay_in_order),
        cmocka_unit_test(test_occurrences_are_counted_within_a_step),
        cmocka_unit_test(test_many_places_are_found_again),
        cmocka_unit_test(test_what_is_beyond_the_bound_is_counted),
        cmocka_unit_test(test_too_many_places_cut_the_trace),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_globs),
        cmocka_unit_test(test_roles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
