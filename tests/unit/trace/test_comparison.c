/* Two runs: equal is earned, different is earned, everything else is not comparable. */
#include "daemon/trace/comparison.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/mem.h"

static const struct case_key some_case = {
    "train", 1, "unordered", "small", "float32", 7
};

/* Two runs that agree in everything; a test changes one thing. */
struct pair {
    struct case_key keys[2];
    struct trace traces[2];
    struct comparison_side a, b;
    char reason[COMPARISON_REASON_SIZE];
};

static struct comparison_side side_of(const struct case_key *key,
                                      const struct trace *trace)
{
    return (struct comparison_side){ .key = key,
                                     .finished = true,
                                     .outcome = OUTCOME_COMPLETED,
                                     .iterations = 1,
                                     .probes = "{\"probes\":1}",
                                     .digest = "aa",
                                     .distinct_digests = 1,
                                     .trace = trace };
}

static void add(struct trace *t, int64_t step, const char *place, uint64_t in,
                uint64_t out)
{
    trace_add(t, 0, step, place, (struct digest){ 0, in }, (struct digest){ 0, out });
}

static void setup(struct pair *p)
{
    memset(p, 0, sizeof *p);
    for (int i = 0; i < 2; i++) {
        p->keys[i] = some_case;
        for (int64_t step = 0; step < 3; step++) {
            add(&p->traces[i], step, "conv/forward", 1, 2);
            add(&p->traces[i], step, "loss", 2, 3);
        }
    }
    p->a = side_of(&p->keys[0], &p->traces[0]);
    p->b = side_of(&p->keys[1], &p->traces[1]);
}

static enum comparison_verdict judge(struct pair *p)
{
    enum comparison_verdict verdict = COMPARISON_NOT_COMPARABLE;

    if (comparison_fit(&p->a, &p->b, p->reason)) {
        struct trace_comparison c;

        trace_compare(&p->traces[0], &p->traces[1], &c);
        verdict = comparison_judge(&p->a, &p->b, &c, p->reason);
        trace_comparison_release(&c);
    }
    return verdict;
}

static void check(struct pair *p, enum comparison_verdict verdict, const char *reason)
{
    enum comparison_verdict got = judge(p);

    if (got != verdict || !strstr(p->reason, reason)) {
        fail_msg("%s (%s), not %s (…%s…)", comparison_verdict_name(got), p->reason,
                 comparison_verdict_name(verdict), reason);
    }
    trace_release(&p->traces[0]);
    trace_release(&p->traces[1]);
}

static void test_equal(void **state)
{
    struct pair p;

    (void)state;
    setup(&p);
    check(&p, COMPARISON_EQUAL, "all 6 records of 3 steps agree");
    /* What was asked for does not matter where all of it agrees. */
    setup(&p);
    copy_text(p.keys[1].variant, sizeof p.keys[1].variant, "ordered");
    p.keys[1].seed = 8;
    p.b.probes = "";
    check(&p, COMPARISON_EQUAL, "6 records");
}

static void test_different(void **state)
{
    struct pair p;

    (void)state;
    setup(&p);
    p.traces[1].records[4].out.lo = 9;
    check(&p, COMPARISON_DIFFERENT, "root cause: conv/forward, step 2: equal inputs");
    setup(&p);
    p.traces[1].records[3].in.lo = 9;
    check(&p, COMPARISON_DIFFERENT, "first difference: loss, step 1: its inputs differ");
    setup(&p);
    p.traces[0].records[0].in.lo = p.traces[1].records[0].in.lo = 0;
    p.traces[1].records[0].out.lo = 9;
    check(&p, COMPARISON_DIFFERENT, "is not recorded");
    setup(&p);
    p.traces[1].records[4].out.lo = 9;
    p.a.iterations = 2;
    check(&p, COMPARISON_DIFFERENT, "conv/forward, step 2 of iteration 0: equal");
    setup(&p);
    p.b.digest = "bb";
    check(&p, COMPARISON_DIFFERENT, "where there is no probe");
    setup(&p);
    p.b.distinct_digests = 2;
    p.a.iterations = p.b.iterations = 4;
    check(&p, COMPARISON_DIFFERENT, "where there is no probe");
    /* A difference is one, whatever became of the runs and of the rest of the trace. */
    setup(&p);
    p.traces[1].records[4].out.lo = 9;
    p.traces[0].dropped = 5;
    p.a.outcome = p.b.outcome = OUTCOME_CRASHED;
    p.b.probes = "";
    check(&p, COMPARISON_DIFFERENT, "root cause");
}

/* Where it begins by itself, it is said in words. */
static void test_what_nothing_computes(void **state)
{
    static const struct {
        const char *place, *reason;
    } cases[] = { { "data/batch", "root cause: data/batch, step 0: the data differ" },
                  { "rng/dropout", "the generator differs" },
                  { "variable/w/before", "before anything was computed" },
                  { "optimizer/w", "what it reads is not recorded" },
                  { "output/y", "what it reads is not recorded" } };
    struct pair p;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(&p, 0, sizeof p);
        for (int k = 0; k < 2; k++) {
            p.keys[k] = some_case;
            add(&p.traces[k], 0, cases[i].place, 0, (uint64_t)k);
        }
        p.a = side_of(&p.keys[0], &p.traces[0]);
        p.b = side_of(&p.keys[1], &p.traces[1]);
        check(&p, COMPARISON_DIFFERENT, cases[i].reason);
    }
}

static void test_structure(void **state)
{
    struct pair p;

    (void)state;
    setup(&p);
    add(&p.traces[0], 3, "conv/forward", 1, 2);
    add(&p.traces[1], 3, "conv/backward", 1, 2);
    check(&p, COMPARISON_DIFFERENT,
          "6 records agree, then A has conv/forward where B has conv/backward");
    setup(&p);
    add(&p.traces[0], 3, "conv/forward", 1, 2);
    check(&p, COMPARISON_DIFFERENT, "B ends there and A goes on");
    /* Nothing follows where they were not to do, or to record, the same. */
    for (int i = 0; i < 8; i++) {
        setup(&p);
        add(&p.traces[0], 3, "conv/forward", 1, 2);
        if (i % 2) {
            add(&p.traces[1], 3, "conv/backward", 1, 2);
        }
        p.b.probes = i / 2 == 0 ? "{\"probes\":2}" : p.b.probes;
        p.b.iterations = i / 2 == 1 ? 9 : p.b.iterations;
        p.keys[1].version = i / 2 == 2 ? 2 : 1;
        copy_text(p.keys[1].variant, sizeof p.keys[1].variant,
                  i / 2 == 3 ? "ordered" : "unordered");
        check(&p, COMPARISON_NOT_COMPARABLE,
              i / 2 == 0   ? "probed differently"
              : i / 2 == 1 ? "iterations"
              : i / 2 == 2 ? "versions"
                           : "variants");
    }
}

static void test_cut_traces(void **state)
{
    struct pair p;

    (void)state;
    setup(&p);
    add(&p.traces[0], 3, "conv/forward", 1, 2);
    p.b.outcome = OUTCOME_TIMEOUT;
    check(&p, COMPARISON_NOT_COMPARABLE, "B ends there: timeout");
    setup(&p);
    add(&p.traces[1], 3, "conv/forward", 1, 2);
    p.traces[0].dropped = 3;
    check(&p, COMPARISON_NOT_COMPARABLE, "A ends there: the rest of it was not kept");
    /* The one that goes on may be cut: the other is whole. */
    setup(&p);
    add(&p.traces[0], 3, "conv/forward", 1, 2);
    p.a.outcome = OUTCOME_TIMEOUT;
    check(&p, COMPARISON_DIFFERENT, "B ends there and A goes on");
    setup(&p);
    p.traces[0].dropped = p.traces[1].dropped = 2;
    check(&p, COMPARISON_NOT_COMPARABLE, "first 6 records agree; the rest");
    setup(&p);
    p.a.outcome = OUTCOME_CRASHED;
    check(&p, COMPARISON_NOT_COMPARABLE, "A did not complete");
    setup(&p);
    p.a.outcome = p.b.outcome = OUTCOME_CRASHED;
    check(&p, COMPARISON_NOT_COMPARABLE, "both did not complete");
    setup(&p);
    add(&p.traces[0], 3, "conv/forward", 1, 2);
    add(&p.traces[1], 3, "conv/backward", 1, 2);
    p.b.outcome = OUTCOME_INVALID;
    check(&p, COMPARISON_NOT_COMPARABLE, "not all that was written is valid");
    setup(&p);
    add(&p.traces[0], 3, "conv/forward", 1, 2);
    add(&p.traces[1], 3, "conv/backward", 1, 2);
    p.a.outcome = OUTCOME_INVALID;
    check(&p, COMPARISON_NOT_COMPARABLE, "not all that was written is valid");
    setup(&p);
    p.traces[1].dropped = 1;
    check(&p, COMPARISON_NOT_COMPARABLE, "first 6 records agree; the rest");
    setup(&p);
    p.b.outcome = OUTCOME_CRASHED;
    check(&p, COMPARISON_NOT_COMPARABLE, "B did not complete");
    setup(&p);
    add(&p.traces[1], 3, "conv/forward", 1, 2);
    check(&p, COMPARISON_DIFFERENT, "A ends there and B goes on");
    setup(&p);
    p.traces[0].count = p.traces[1].count = 2;
    check(&p, COMPARISON_EQUAL, "all 2 records of 1 step agree");
}

static void test_unfit(void **state)
{
    struct pair p;

    (void)state;
    setup(&p);
    copy_text(p.keys[1].workload, sizeof p.keys[1].workload, "matmul");
    check(&p, COMPARISON_NOT_COMPARABLE, "different workloads: A of train, B of matmul");
    setup(&p);
    copy_text(p.keys[1].size, sizeof p.keys[1].size, "large");
    check(&p, COMPARISON_NOT_COMPARABLE, "sizes");
    setup(&p);
    copy_text(p.keys[1].dtype, sizeof p.keys[1].dtype, "float64");
    check(&p, COMPARISON_NOT_COMPARABLE, "dtypes");
    setup(&p);
    p.b.finished = false;
    check(&p, COMPARISON_NOT_COMPARABLE, "B has not finished");
    setup(&p);
    p.a.finished = false;
    check(&p, COMPARISON_NOT_COMPARABLE, "A has not finished");
    setup(&p);
    p.a.finished = p.b.finished = false;
    check(&p, COMPARISON_NOT_COMPARABLE, "both have not finished");
    setup(&p);
    p.b.trace = NULL;
    check(&p, COMPARISON_NOT_COMPARABLE, "B has no trace");
    setup(&p);
    p.a.trace = NULL;
    check(&p, COMPARISON_NOT_COMPARABLE, "A has no trace");
    setup(&p);
    p.a.trace = p.b.trace = NULL;
    check(&p, COMPARISON_NOT_COMPARABLE, "both have no trace");
}

/* Runs that vary within themselves may vary in the same way, or not: their digests do not
 * say. */
static void test_results(void **state)
{
    struct pair p;

    (void)state;
    setup(&p);
    p.a.iterations = p.b.iterations = 4;
    p.a.distinct_digests = p.b.distinct_digests = 2;
    assert_int_equal(comparison_results(&p.a, &p.b), COMPARISON_RESULTS_UNKNOWN);
    check(&p, COMPARISON_NOT_COMPARABLE, "vary within each run");
    setup(&p);
    assert_int_equal(comparison_results(&p.a, &p.b), COMPARISON_RESULTS_EQUAL);
    p.b.iterations = 3;
    assert_int_equal(comparison_results(&p.a, &p.b), COMPARISON_RESULTS_EQUAL);
    p.b.distinct_digests = 3;
    assert_int_equal(comparison_results(&p.a, &p.b), COMPARISON_RESULTS_UNKNOWN);
    p.b.digest = "bb";
    assert_int_equal(comparison_results(&p.a, &p.b), COMPARISON_RESULTS_DIFFERENT);
    p.b.outcome = OUTCOME_INVALID;
    assert_int_equal(comparison_results(&p.a, &p.b), COMPARISON_RESULTS_UNKNOWN);
    p.b.outcome = OUTCOME_COMPLETED;
    p.b.finished = false;
    assert_int_equal(comparison_results(&p.a, &p.b), COMPARISON_RESULTS_UNKNOWN);
    assert_int_equal(comparison_results(&p.b, &p.a), COMPARISON_RESULTS_UNKNOWN);
    trace_release(&p.traces[0]);
    trace_release(&p.traces[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_different),
        cmocka_unit_test(test_what_nothing_computes),
        cmocka_unit_test(test_structure),
        cmocka_unit_test(test_cut_traces),
        cmocka_unit_test(test_unfit),
        cmocka_unit_test(test_results),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
