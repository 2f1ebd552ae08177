/* Where runs diverge: small traces written by hand, against what a look at all pairs
 * says.
 */
#include "daemon/trace/divergence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/trace/comparison.h"

/* "step:place:in:out" records, separated by blanks; all of iteration 0. */
static void feed(struct divergence *d, const char *text)
{
    struct trace trace;
    char place[64];
    int step, in, out, length;

    trace_init(&trace);
    while (sscanf(text, " %d:%63[^:]:%d:%d%n", &step, place, &in, &out, &length) == 4) {
        trace_add(&trace, 0, step, place, (struct digest){ 0, (uint64_t)in },
                  (struct digest){ 0, (uint64_t)out });
        text += length;
    }
    divergence_add(d, &trace);
    trace_release(&trace);
}

static struct divergence_result fed(struct divergence *d, const char *const *texts)
{
    struct divergence_result result;

    while (*texts) {
        feed(d, *texts++);
    }
    divergence_result(d, &result);
    return result;
}

#define FED(d, ...) fed(d, (const char *const[]){ __VA_ARGS__, NULL })

static void test_nothing_diverges(void **state)
{
    struct divergence *d = divergence_new();
    struct divergence_result r = FED(d, "0:a:0:1 0:b:1:2", "0:a:0:1 0:b:1:2");

    (void)state;
    assert_int_equal(r.traces, 2);
    assert_int_equal(r.records, 2);
    assert_int_equal(r.root.position, -1);
    assert_int_equal(r.first.position, -1);
    assert_int_equal(r.structure[0].position, -1);
    assert_int_equal(r.runs_apart, 0);
    assert_int_equal(r.roots, 0);
    divergence_free(d);
}

static void test_the_root_is_where_inputs_agree(void **state)
{
    struct divergence *d = divergence_new();
    struct divergence_result r =
        FED(d, "0:a:0:1 1:b:1:2 1:c:2:3", "0:a:0:1 1:b:1:2 1:c:2:3",
            "0:a:0:1 1:b:1:9 1:c:9:8", "0:a:0:1 1:b:1:2 1:c:2:3");

    (void)state;
    assert_int_equal(r.root.position, 1);
    assert_int_equal(r.root.step, 1);
    assert_string_equal(r.root.place, "b");
    assert_true(r.root.says_all);
    assert_int_equal(r.pairs, 6);
    assert_int_equal(r.pairs_diverged, 3);
    assert_int_equal(r.runs_diverged, 1);
    assert_int_equal(r.example[0], 0);
    assert_int_equal(r.example[1], 2);
    assert_int_equal(r.first.position, 1);
    assert_int_equal(r.roots, 1);
    divergence_free(d);
}

/* An earlier root in a later pair; its counts include the runs before. */
static void test_the_earliest_of_all_pairs(void **state)
{
    struct divergence *d = divergence_new();
    struct divergence_result r =
        FED(d, "0:a:0:1 0:b:1:2 0:c:2:3", "0:a:0:1 0:b:1:2 0:c:2:4",
            "0:a:0:1 0:b:1:2 0:c:2:3", "0:a:0:1 0:b:1:7 0:c:7:3");

    (void)state;
    assert_string_equal(r.root.place, "b");
    assert_int_equal(r.roots, 2);
    assert_int_equal(r.pairs, 6);
    assert_int_equal(r.pairs_diverged, 3);
    assert_int_equal(r.example[1], 3);
    divergence_free(d);
}

/* The pair that diverges is neither with the first run nor adjacent. */
static void test_pairs_without_the_first_run(void **state)
{
    struct divergence *d = divergence_new();
    struct divergence_result r = FED(d, "0:a:1:1 0:b:1:2", "0:a:5:5 0:b:5:6",
                                     "0:a:1:1 0:b:1:2", "0:a:5:5 0:b:5:7");

    (void)state;
    assert_string_equal(r.root.place, "b");
    assert_int_equal(r.example[0], 1);
    assert_int_equal(r.example[1], 3);
    assert_int_equal(r.pairs, 2);
    assert_int_equal(r.pairs_diverged, 1);
    assert_int_equal(r.first.position, 0); /* what made the inputs of a is not probed */
    divergence_free(d);
}

static void test_inputs_differ_and_nothing_explains_it(void **state)
{
    struct divergence *d = divergence_new();
    struct divergence_result r = FED(d, "0:a:0:1 0:b:1:2", "0:a:0:1 0:b:3:4");

    (void)state;
    assert_int_equal(r.root.position, -1);
    assert_string_equal(r.first.place, "b");
    divergence_free(d);
}

static void test_structure_that_diverges(void **state)
{
    struct divergence *d = divergence_new();
    struct divergence_result r =
        FED(d, "0:a:0:1 0:b:1:2 0:c:2:3", "0:a:0:1 0:x:1:2 0:c:2:4");

    (void)state;
    assert_int_equal(r.root.position, -1); /* not guessed over */
    assert_int_equal(r.structure[0].position, 1);
    assert_string_equal(r.structure[0].place, "b");
    assert_string_equal(r.structure[1].place, "x");
    assert_int_equal(r.runs_apart, 1);
    /* Runs that went the other way together are compared with each other. */
    r = FED(d, "0:a:0:1 0:x:1:2 0:c:2:5");
    assert_string_equal(r.root.place, "c");
    assert_int_equal(r.example[0], 1);
    assert_int_equal(r.example[1], 2);
    /* What lies before the divergence counts for all. */
    r = FED(d, "0:a:0:7 0:y:7:7");
    assert_string_equal(r.root.place, "a");
    assert_int_equal(r.pairs, 6);
    divergence_free(d);
}

static void test_lengths_that_part(void **state)
{
    struct divergence *d = divergence_new();
    struct divergence_result r = FED(d, "0:a:0:1 0:b:1:2", "0:a:0:1", "");

    (void)state;
    assert_int_equal(r.structure[0].position, 0);
    assert_string_equal(r.structure[0].place, "a");
    assert_string_equal(r.structure[1].place, "");
    assert_int_equal(r.runs_apart, 2);
    assert_int_equal(r.root.position, -1);
    divergence_free(d);
    d = divergence_new();
    r = FED(d, "", "0:a:0:1", "0:a:0:2");
    assert_string_equal(r.structure[0].place, "");
    assert_string_equal(r.structure[1].place, "a");
    assert_string_equal(r.root.place, "a");
    divergence_free(d);
}

static void test_occurrence(void **state)
{
    struct divergence *d = divergence_new();
    struct divergence_result r =
        FED(d, "0:a:0:1 0:a:0:1 1:a:0:1 0:a:0:1", "0:a:0:1 0:a:0:1 1:a:0:1 0:a:0:2");

    (void)state;
    assert_int_equal(r.root.position, 3);
    assert_int_equal(r.root.occurrence, 2);
    divergence_free(d);
}

/* More structures than are told apart: the rest is counted, not guessed. */
static void test_structures_are_bounded(void **state)
{
    struct divergence *d = divergence_new();
    struct divergence_result r;
    char text[64];

    (void)state;
    for (int i = 0; i < DIVERGENCE_STRUCTURES_MAX + 4; i++) {
        snprintf(text, sizeof text, "0:a:0:1 %d:b:1:2", i);
        feed(d, text);
    }
    divergence_result(d, &r);
    assert_int_equal(r.unplaced, 4);
    assert_int_equal(r.root.position, -1);
    /* A root before them frees what is behind it. */
    feed(d, "0:a:0:2 99:b:2:3");
    feed(d, "0:z:0:1");
    feed(d, "0:z:0:1");
    divergence_result(d, &r);
    assert_int_equal(r.unplaced, 4);
    assert_string_equal(r.root.place, "a");
    divergence_free(d);
}

/* Likewise with names. */
static void test_names_are_bounded(void **state)
{
    struct divergence *d = divergence_new();
    struct divergence_result r;
    struct trace trace;
    char place[32];

    (void)state;
    trace_init(&trace);
    for (int i = 0; i < TRACE_PLACES_MAX; i++) {
        snprintf(place, sizeof place, "p%d", i);
        trace_add(&trace, 0, 0, place, (struct digest){ 0, 1 }, (struct digest){ 0, 2 });
    }
    divergence_add(d, &trace);
    trace_release(&trace);
    r = FED(d, "0:p0:1:2 0:another:1:2", "0:p0:1:2 0:another:1:3");
    assert_int_equal(r.unplaced, 2);
    assert_int_equal(r.root.position, -1);
    r = FED(d, "0:p0:1:3 0:another:1:2");
    assert_int_equal(r.unplaced, 2);
    assert_string_equal(r.root.place, "p0");
    divergence_free(d);
}

/* What reads more than it says is not a root where that may differ. */
static void test_names_say_what_is_read(void **state)
{
    static const struct {
        const char *a, *b, *root;
    } cases[] = {
        { "0:optimizer/w:1:2 1:optimizer/w:3:4", "0:optimizer/w:5:6 1:optimizer/w:3:7",
          "" },
        { "0:p:1:2 0:optimizer/w:3:4", "0:p:5:6 0:optimizer/w:3:7", "optimizer/w" },
        { "0:p:1:2 0:output/y:3:4", "0:p:5:6 0:output/y:3:7", "" },
        { "0:p:1:2 0:output/y:3:4", "0:p:1:2 0:output/y:3:7", "output/y" },
        { "0:p:1:2 0:q:0:4", "0:p:5:6 0:q:0:7", "" },
        { "0:p:1:2 0:data/x:0:4", "0:p:5:6 0:data/x:0:7", "data/x" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct divergence *d = divergence_new();
        struct divergence_result r = FED(d, cases[i].a, cases[i].b);

        assert_string_equal(r.root.place, cases[i].root);
        assert_false(r.root.says_all);
        divergence_free(d);
    }
}

enum { PAIRS = 500, PAIR_RECORDS = 20 };

/* Records of all roles; now and then one of the two reads or writes something else. */
static void make_pair(struct trace pair[2])
{
    static const char *const places[] = { "p",           "data/x",
                                          "rng/s",       "variable/w/before",
                                          "optimizer/w", "output/y" };

    trace_init(&pair[0]);
    trace_init(&pair[1]);
    for (int at = 0; at < PAIR_RECORDS; at++) {
        const char *place = places[rand() % 6];
        bool reads_nothing = rand() % 3 == 0;

        for (int i = 0; i < 2; i++) {
            struct digest in = { 0, reads_nothing ? 0 : 1 + (uint64_t)(rand() % 8 == 0) };

            trace_add(&pair[i], at / 10, at, place, in,
                      (struct digest){ 1, (uint64_t)(rand() % 8 == 0) });
        }
    }
}

/* A pair of runs diverges where the comparison of their traces says. */
static void test_two_runs_part_as_trace_compare_says(void **state)
{
    int later = 0; /* the root is not the first difference */

    (void)state;
    srand(11);
    for (int round = 0; round < PAIRS; round++) {
        struct divergence *d = divergence_new();
        struct trace_comparison c;
        struct divergence_result r;
        struct trace pair[2];

        make_pair(pair);
        trace_compare(&pair[0], &pair[1], &c);
        divergence_add(d, &pair[0]);
        divergence_add(d, &pair[1]);
        divergence_result(d, &r);
        assert_int_equal(r.root.position, c.root);
        assert_int_equal(r.first.position, c.first);
        later += c.root > c.first;
        trace_comparison_release(&c);
        trace_release(&pair[0]);
        trace_release(&pair[1]);
        divergence_free(d);
    }
    assert_true(later > PAIRS / 10);
}

enum { RUNS = 12, RECORDS = 30 };

/* What a look at all pairs says: the earliest position with equal in and different out.
 */
static int earliest(int in[RUNS][RECORDS], int out[RUNS][RECORDS], int runs,
                    int64_t *ret_diverged)
{
    for (int at = 0; at < RECORDS; at++) {
        *ret_diverged = 0;
        for (int a = 0; a < runs; a++) {
            for (int b = a + 1; b < runs; b++) {
                *ret_diverged += in[a][at] == in[b][at] && out[a][at] != out[b][at];
            }
        }
        if (*ret_diverged) {
            return at;
        }
    }
    return -1;
}

static void test_against_all_pairs(void **state)
{
    static int in[RUNS][RECORDS], out[RUNS][RECORDS];

    (void)state;
    srand(7);
    for (int round = 0; round < 200; round++) {
        struct divergence *d = divergence_new();

        for (int run = 0; run < RUNS; run++) {
            struct divergence_result r;
            struct trace trace;
            int64_t diverged;

            trace_init(&trace);
            for (int at = 0; at < RECORDS; at++) {
                in[run][at] = rand() % 8 == 0;
                out[run][at] = 10 + in[run][at] + (rand() % (20 * RUNS) == 0 ? 5 : 0);
                trace_add(&trace, 0, at, "p", (struct digest){ 1, (uint64_t)in[run][at] },
                          (struct digest){ 1, (uint64_t)out[run][at] });
            }
            divergence_add(d, &trace);
            trace_release(&trace);
            divergence_result(d, &r);
            assert_int_equal(r.root.position, earliest(in, out, run + 1, &diverged));
            assert_int_equal(r.pairs_diverged, diverged);
        }
        divergence_free(d);
    }
}

/* The same place at the same step of another iteration is another. */
static void test_iterations_are_told_apart(void **state)
{
    struct divergence *d = divergence_new();
    struct divergence_result r;

    (void)state;
    for (int iteration = 0; iteration < 2; iteration++) {
        struct trace t;

        trace_init(&t);
        trace_add(&t, iteration, 0, "a", (struct digest){ 0, 1 },
                  (struct digest){ 0, 2 });
        divergence_add(d, &t);
        trace_release(&t);
    }
    divergence_result(d, &r);
    assert_int_equal(r.structure[0].position, 0);
    assert_int_equal(r.structure[0].iteration, 0);
    assert_int_equal(r.structure[1].iteration, 1);
    assert_int_equal(r.runs_apart, 1);
    divergence_free(d);
    divergence_free(NULL);
}

/* Structures that part before the root, or at it, are still in use: nothing is free. */
static void test_structures_before_the_root_stay(void **state)
{
    struct divergence *d = divergence_new();
    struct divergence_result r;
    char text[64];

    (void)state;
    for (int i = 0; i < DIVERGENCE_STRUCTURES_MAX; i++) {
        snprintf(text, sizeof text, "0:a:0:1 %d:b:1:2", i);
        feed(d, text);
    }
    r = FED(d, "0:a:0:1 0:b:1:9");
    assert_int_equal(r.root.position, 1);
    assert_int_equal(r.unplaced, 0);
    r = FED(d, "0:a:0:1 99:b:1:2");
    assert_int_equal(r.unplaced, 1);
    r = FED(d, "0:a:0:1 3:b:1:2"); /* a structure that is known */
    assert_int_equal(r.unplaced, 1);
    divergence_free(d);
}

/* A run that ended before the root has nothing to say of it, and is apart. */
static void test_a_run_that_ends_before_the_root(void **state)
{
    struct divergence *d = divergence_new();
    struct divergence_result r = FED(d, "0:a:0:1 0:b:1:2", "0:a:0:1 0:b:1:3", "0:a:0:1");

    (void)state;
    assert_int_equal(r.root.position, 1);
    assert_int_equal(r.pairs, 1);
    assert_int_equal(r.runs_apart, 1);
    assert_int_equal(r.unplaced, 0);
    divergence_free(d);
}

/* A place is said to say all that it reads only if it did so in every run. */
static void test_a_place_that_stops_saying(void **state)
{
    struct divergence *d = divergence_new();
    struct divergence_result r = FED(d, "0:a:0:1 0:q:5:6", "0:a:0:1 0:q:0:6");

    (void)state;
    assert_int_equal(r.first.position, 1);
    assert_false(r.first.says_all);
    divergence_free(d);
}

/* More values than are kept: the run is counted as one that could not be placed. */
static void test_values_are_bounded(void **state)
{
    struct divergence *d = divergence_new();
    struct divergence_result r;
    int runs = 2 + DIVERGENCE_VALUES_MAX / TRACE_RECORDS_MAX;

    (void)state;
    for (int run = 0; run < runs; run++) {
        struct trace t;

        trace_init(&t);
        for (int64_t i = 0; i < TRACE_RECORDS_MAX;
             i++) { /* which read other things, too */
            trace_add(&t, 0, i, "p", (struct digest){ 1, (uint64_t)run },
                      (struct digest){ 2, (uint64_t)run });
        }
        divergence_add(d, &t);
        trace_release(&t);
    }
    divergence_result(d, &r);
    assert_int_equal(r.traces, runs);
    assert_int_equal(r.unplaced, 1);
    assert_int_equal(r.first.position, 0);
    assert_int_equal(r.root.position, -1);
    divergence_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_diverges),
        cmocka_unit_test(test_the_root_is_where_inputs_agree),
        cmocka_unit_test(test_the_earliest_of_all_pairs),
        cmocka_unit_test(test_pairs_without_the_first_run),
        cmocka_unit_test(test_inputs_differ_and_nothing_explains_it),
        cmocka_unit_test(test_structure_that_diverges),
        cmocka_unit_test(test_lengths_that_part),
        cmocka_unit_test(test_occurrence),
        cmocka_unit_test(test_structures_are_bounded),
        cmocka_unit_test(test_names_are_bounded),
        cmocka_unit_test(test_names_say_what_is_read),
        cmocka_unit_test(test_two_runs_part_as_trace_compare_says),
        cmocka_unit_test(test_against_all_pairs),
        cmocka_unit_test(test_iterations_are_told_apart),
        cmocka_unit_test(test_structures_before_the_root_stay),
        cmocka_unit_test(test_a_run_that_ends_before_the_root),
        cmocka_unit_test(test_a_place_that_stops_saying),
        cmocka_unit_test(test_values_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
