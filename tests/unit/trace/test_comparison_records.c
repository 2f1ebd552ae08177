/* Two traces: what is first, what is a cause, what follows, and where structures diverge.
 */
#include "daemon/trace/comparison.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/trace/trace_reads.h"

/* A trace in words: records "iteration.step place in>out", separated by blanks and
 * commas. Digests are single letters; '0' is nothing. */
static void make(struct trace *t, const char *text)
{
    trace_init(t);
    while (*text) {
        int iteration, step, used;
        char place[32], in, out;

        if (sscanf(text, "%d.%d %31s %c>%c%n", &iteration, &step, place, &in, &out,
                   &used) != 5) {
            fail_msg("at '%s'", text);
        }
        trace_add(t, iteration, step, place,
                  (struct digest){ 0, in == '0' ? 0 : (uint64_t)in },
                  (struct digest){ 0, out == '0' ? 0 : (uint64_t)out });
        text += used;
        text += strspn(text, ", ");
    }
}

struct both {
    struct trace a, b;
    struct trace_comparison c;
};

static void setup(struct both *both, const char *a, const char *b)
{
    make(&both->a, a);
    make(&both->b, b);
    trace_compare(&both->a, &both->b, &both->c);
}

static void release(struct both *both)
{
    trace_release(&both->a);
    trace_release(&both->b);
    trace_comparison_release(&both->c);
}

/* The kinds of all positions, a letter each. */
static void check_kinds(const struct both *both, const char *kinds)
{
    char text[64] = "";

    for (int64_t i = 0; i < both->c.compared; i++) {
        text[i] = "=oiR"[both->c.kinds[i]];
    }
    assert_string_equal(text, kinds);
}

static void test_equal(void **state)
{
    struct both x;

    (void)state;
    setup(&x, "0.0 p a>b, 0.0 q b>c, 0.1 p a>d", "0.0 p a>b, 0.0 q b>c, 0.1 p a>d");
    check_kinds(&x, "===");
    assert_int_equal(x.c.first, -1);
    assert_int_equal(x.c.root, -1);
    assert_int_equal(x.c.steps, 2);
    assert_int_equal(x.c.same, 3);
    assert_int_equal(x.c.structure, TRACE_DIVERGES_NOWHERE);
    release(&x);
    setup(&x, "", "");
    assert_int_equal(x.c.compared, 0);
    assert_int_equal(x.c.structure, TRACE_DIVERGES_NOWHERE);
    release(&x);
}

static void test_root_and_infected(void **state)
{
    struct both x;

    (void)state;
    setup(&x, "0.0 p a>b, 0.0 q b>c, 0.0 r c>d, 0.1 p a>b, 0.1 q d>e",
          "0.0 p a>b, 0.0 q b>X, 0.0 r X>Y, 0.1 p a>b, 0.1 q Y>Z");
    check_kinds(&x, "=Ri=i");
    assert_int_equal(x.c.first, 1);
    assert_int_equal(x.c.root, 1);
    assert_int_equal(x.c.roots, 1);
    assert_int_equal(x.c.infected, 2);
    assert_int_equal(x.c.same, 2);
    assert_int_equal(x.c.places[0].first, -1);
    assert_int_equal(x.c.places[0].compared, 2);
    assert_int_equal(x.c.places[1].first, 1);
    assert_int_equal(x.c.places[1].first_root, 1);
    assert_int_equal(x.c.places[1].infected, 1);
    assert_int_equal(x.c.places[2].first, 2);
    assert_int_equal(x.c.places[2].first_root, -1);
    release(&x);
}

static void test_absorbed(void **state)
{
    struct both x;

    (void)state;
    setup(&x, "0.0 p a>b, 0.0 q b>c", "0.0 p X>b, 0.0 q b>c");
    check_kinds(&x, "o=");
    assert_int_equal(x.c.first, 0);
    assert_int_equal(x.c.root, -1);
    assert_int_equal(x.c.absorbed, 1);
    release(&x);
}

/* The difference comes in through something that has no probe; a root follows. */
static void test_first_difference_that_is_no_root(void **state)
{
    struct both x;

    (void)state;
    setup(&x, "0.0 p a>b, 0.0 q b>c, 0.0 r e>f", "0.0 p X>Y, 0.0 q Y>Z, 0.0 r e>g");
    check_kinds(&x, "iiR");
    assert_int_equal(x.c.first, 0);
    assert_int_equal(x.c.root, 2);
    release(&x);
}

static void test_other_roots(void **state)
{
    struct both x;

    (void)state;
    setup(&x, "0.0 p a>b, 0.0 q c>d, 1.0 p a>b, 1.0 q c>d, 2.0 p a>b",
          "0.0 p a>X, 0.0 q c>Y, 1.0 p a>Z, 1.0 q c>d, 2.0 p a>b");
    check_kinds(&x, "RRR==");
    assert_int_equal(x.c.roots, 3);
    assert_int_equal(x.c.root, 0);
    assert_int_equal(x.c.places[0].roots, 2);
    assert_int_equal(x.c.places[1].first_root, 1);
    assert_int_equal(x.c.steps, 3);
    release(&x);
}

/* What reads nothing is the cause only where nothing before it can be. */
static void test_places_that_read_nothing(void **state)
{
    struct both x;

    (void)state;
    setup(&x, "0.0 p 0>a, 0.0 q 0>b, 0.1 p 0>c", "0.0 p 0>a, 0.0 q 0>X, 0.1 p 0>Y");
    check_kinds(&x, "=Ri");
    release(&x);
    /* data and generators: at their first difference */
    setup(&x, "0.0 p a>b, 0.0 data/x 0>c, 0.1 data/x 0>d, 0.1 rng/s 0>e, 0.2 rng/s 0>f",
          "0.0 p a>X, 0.0 data/x 0>c, 0.1 data/x 0>Y, 0.1 rng/s 0>e, 0.2 rng/s 0>Z");
    check_kinds(&x, "R=R=R");
    release(&x);
    setup(&x, "0.0 data/x 0>c, 0.1 data/x 0>d, 0.2 data/x 0>e",
          "0.0 data/x 0>X, 0.1 data/x 0>Y, 0.2 data/x 0>e");
    check_kinds(&x, "Ri=");
    release(&x);
    /* variables: at their first record, before anything could write them */
    setup(&x,
          "0.0 variable/w/before 0>a, 0.0 variable/v/before 0>b, 0.0 p a>c,"
          " 0.1 variable/w/before 0>d",
          "0.0 variable/w/before 0>X, 0.0 variable/v/before 0>Y, 0.0 p X>c,"
          " 0.1 variable/w/before 0>Z");
    check_kinds(&x, "RRoi");
    release(&x);
    setup(&x, "0.0 variable/w/before 0>a, 0.0 p a>c, 0.1 variable/w/before 0>d",
          "0.0 variable/w/before 0>a, 0.0 p a>X, 0.1 variable/w/before 0>Z");
    check_kinds(&x, "=Ri");
    release(&x);
}

/* An output reads all inputs of the iteration, so what is in between may be the cause. */
static void test_outputs_of_an_iteration(void **state)
{
    struct both x;

    (void)state;
    setup(
        &x,
        "0.0 p a>b, 0.1 q b>c, 0.1 output/y a>c, 1.0 p a>b, 1.1 q b>c, 1.1 output/y a>c",
        "0.0 p a>X, 0.1 q X>Y, 0.1 output/y a>Y, 1.0 p a>b, 1.1 q b>c, 1.1 output/y a>Z");
    check_kinds(&x, "Rii==R");
    release(&x);
    setup(&x, "0.0 output/y a>b, 1.0 output/y a>b", "0.0 output/y a>X, 1.0 output/y a>Y");
    check_kinds(&x, "RR");
    release(&x);
}

/* A momentum that is different stays so, whatever the gradient is. */
static void test_state_goes_on(void **state)
{
    struct both x;

    (void)state;
    setup(&x, "0.0 g a>b, 0.0 optimizer/w b>c, 0.1 g c>d, 0.1 optimizer/w d>e",
          "0.0 g a>X, 0.0 optimizer/w X>Y, 0.1 g c>d, 0.1 optimizer/w d>Z");
    check_kinds(&x, "Ri=i");
    release(&x);
    setup(&x, "0.0 optimizer/w a>b, 0.1 optimizer/w a>b",
          "0.0 optimizer/w a>b, 0.1 optimizer/w a>X");
    check_kinds(&x, "=R");
    release(&x);
}

static void test_structure_diverges(void **state)
{
    static const struct {
        const char *a, *b;
        int64_t compared;
        enum trace_structure structure;
    } cases[] = {
        { "0.0 p a>b, 0.0 q b>c", "0.0 p a>b, 0.0 r b>c", 1, TRACE_DIVERGES_IN_RECORDS },
        { "0.0 p a>b, 0.1 p b>c", "0.0 p a>b, 0.2 p b>c", 1, TRACE_DIVERGES_IN_RECORDS },
        { "0.0 p a>b, 1.0 p b>c", "0.0 p a>b, 0.0 p b>c", 1, TRACE_DIVERGES_IN_RECORDS },
        { "0.0 p a>b", "0.0 q a>b", 0, TRACE_DIVERGES_IN_RECORDS },
        { "0.0 p a>b, 0.0 q b>c", "0.0 p a>b", 1, TRACE_DIVERGES_IN_LENGTH },
        { "", "0.0 p a>b", 0, TRACE_DIVERGES_IN_LENGTH },
        /* the same places, met in another order: names decide, not numbers */
        { "0.0 p a>b, 0.0 q a>b, 0.1 q a>b", "0.0 p a>b, 0.0 r a>b, 0.1 q a>b", 1,
          TRACE_DIVERGES_IN_RECORDS },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct both x;

        setup(&x, cases[i].a, cases[i].b);
        assert_int_equal(x.c.compared, cases[i].compared);
        assert_int_equal(x.c.structure, cases[i].structure);
        assert_int_equal(x.c.first, -1);
        release(&x);
    }
}

/* Nothing behind a divergence counts, however different. */
static void test_what_lies_before_a_divergence_counts(void **state)
{
    struct both x;

    (void)state;
    setup(&x, "0.0 p a>b, 0.0 q b>c, 0.0 r c>d, 0.1 p a>b",
          "0.0 p a>X, 0.0 q X>c, 0.1 p a>Y, 0.1 q b>Z");
    check_kinds(&x, "Ro");
    assert_int_equal(x.c.structure, TRACE_DIVERGES_IN_RECORDS);
    assert_int_equal(x.c.compared, 2);
    assert_int_equal(x.c.roots, 1);
    assert_int_equal(x.c.places[2].compared, 0);
    release(&x);
}

/* Positions tell them apart. */
static void test_a_place_twice_in_a_step(void **state)
{
    struct both x;

    (void)state;
    setup(&x, "0.0 cell a>b, 0.0 cell b>c, 0.0 cell c>d",
          "0.0 cell a>b, 0.0 cell b>X, 0.0 cell X>Y");
    check_kinds(&x, "=Ri");
    assert_int_equal(trace_occurrence(&x.a, x.c.root), 1);
    assert_int_equal(x.c.steps, 1);
    release(&x);
    setup(&x, "0.0 cell a>b, 0.0 cell b>c, 0.0 out c>d", "0.0 cell a>b, 0.0 out c>d");
    assert_int_equal(x.c.structure, TRACE_DIVERGES_IN_RECORDS);
    assert_int_equal(x.c.compared, 1);
    release(&x);
}

static void test_roles(void **state)
{
    struct trace_aspect data, rng, variables;
    struct both x;

    (void)state;
    setup(&x,
          "0.0 variable/w/before 0>a, 0.0 data/x 0>b, 0.1 variable/w/before 0>c,"
          " 0.1 data/x 0>d, 0.2 data/x 0>e",
          "0.0 variable/w/before 0>a, 0.0 data/x 0>b, 0.1 variable/w/before 0>X,"
          " 0.1 data/x 0>e, 0.2 data/x 0>d");
    data = trace_compare_role(&x.a, &x.b, &x.c, TRACE_ROLE_DATA);
    rng = trace_compare_role(&x.a, &x.b, &x.c, TRACE_ROLE_RNG);
    variables = trace_compare_role(&x.a, &x.b, &x.c, TRACE_ROLE_VARIABLE);
    assert_int_equal(data.compared, 3);
    assert_int_equal(data.different, 2);
    assert_int_equal(data.first, 3);
    assert_true(data.reordered);
    assert_int_equal(rng.compared, 0);
    assert_int_equal(rng.first, -1);
    assert_false(rng.reordered);
    assert_int_equal(variables.compared, 1); /* at the start they are equal */
    assert_int_equal(variables.different, 0);
    release(&x);
    setup(&x, "0.0 data/x 0>a, 0.1 data/x 0>b, 0.2 data/x 0>b",
          "0.0 data/x 0>b, 0.1 data/x 0>a, 0.2 data/x 0>a");
    data = trace_compare_role(&x.a, &x.b, &x.c, TRACE_ROLE_DATA);
    assert_int_equal(data.different, 3);
    assert_false(data.reordered); /* not as often */
    release(&x);
}

/* Counts add up, whatever the traces are; and comparing the other way round shows the
 * same. */
static void test_sums(void **state)
{
    uint64_t random = 3;

    (void)state;
    for (int round = 0; round < 300; round++) {
        struct trace_comparison back;
        struct both x = { .c = { .first = 0 } };
        int64_t places = 0;

        trace_init(&x.a);
        trace_init(&x.b);
        for (int i = 0; i < 50; i++) {
            struct digest in, out;
            struct digest other;
            const char *place;

            random = random * 6364136223846793005u + 1442695040888963407u;
            in = (struct digest){ 0, random >> 60 & 1 };
            out = (struct digest){ 1, random >> 61 & 1 };
            other = (struct digest){ 1, random >> 59 & 1 };
            place = random >> 58 & 1 ? "data/p" : "q";

            trace_add(&x.a, 0, i / 10, place, in, out);
            trace_add(&x.b, 0, i / 10, random >> 50 & 127 ? place : "r", in,
                      random >> 40 & 3 ? out : other);
        }
        trace_compare(&x.a, &x.b, &x.c);
        trace_compare(&x.b, &x.a, &back);
        assert_int_equal(x.c.same + x.c.absorbed + x.c.infected + x.c.roots,
                         x.c.compared);
        for (int i = 0; i < x.a.place_count; i++) {
            places += x.c.places[i].compared;
        }
        assert_int_equal(places, x.c.compared);
        assert_int_equal(back.compared, x.c.compared);
        assert_memory_equal(back.kinds, x.c.kinds, (size_t)x.c.compared);
        assert_true(x.c.root < 0 || x.c.root >= x.c.first);
        trace_comparison_release(&back);
        release(&x);
    }
}

/* What a record reads is what is found on the way to it. */
static void test_reads_at_a_position(void **state)
{
    struct trace t;
    struct trace_reads reads;

    (void)state;
    make(&t,
         "0.0 data/x 0>a, 0.0 p a>b, 0.0 q 0>c, 1.1 optimizer/w d>e, 1.1 output/y 0>f");
    trace_reads_init(&reads, &t);
    for (int64_t i = 0; i < t.count; i++) {
        assert_true(digest_equal(trace_reads_at(&t, i), trace_reads_next(&reads)));
    }
    assert_false(digest_equal(trace_reads_at(&t, 2), trace_reads_at(&t, 4)));
    assert_true(digest_equal(trace_reads_at(&t, 1), t.records[1].in)); /* says all */
    trace_reads_release(&reads);
    trace_release(&t);
}

/* The same digests in another order are told as such, whichever half of them differs. */
static void test_reordered_digests(void **state)
{
    static const struct digest one = { 1, 5 }, two = { 2, 5 }, three = { 2, 6 };
    const struct digest orders[][3] = { { one, two, three },
                                        { three, one, two },
                                        { three, two, two } };

    (void)state;
    for (int other = 1; other < 3; other++) {
        struct both both;
        struct trace_aspect aspect;

        trace_init(&both.a);
        trace_init(&both.b);
        for (int i = 0; i < 3; i++) {
            trace_add(&both.a, 0, i, "output/y", one, orders[0][i]);
            trace_add(&both.b, 0, i, "output/y", one, orders[other][i]);
        }
        trace_compare(&both.a, &both.b, &both.c);
        aspect = trace_compare_role(&both.a, &both.b, &both.c, TRACE_ROLE_OUTPUT);
        assert_int_equal(aspect.compared, 3);
        assert_int_equal(aspect.reordered, other == 1);
        release(&both);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_root_and_infected),
        cmocka_unit_test(test_absorbed),
        cmocka_unit_test(test_first_difference_that_is_no_root),
        cmocka_unit_test(test_other_roots),
        cmocka_unit_test(test_places_that_read_nothing),
        cmocka_unit_test(test_outputs_of_an_iteration),
        cmocka_unit_test(test_state_goes_on),
        cmocka_unit_test(test_structure_diverges),
        cmocka_unit_test(test_what_lies_before_a_divergence_counts),
        cmocka_unit_test(test_a_place_twice_in_a_step),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_reads_at_a_position),
        cmocka_unit_test(test_reordered_digests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
