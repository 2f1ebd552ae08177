/* Operations of frameworks: which switch a code names, and what no code is earned by. */
#include "daemon/operations/operations.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/mem.h"

enum { VARIANTS_MAX = 12 };

struct seen {
    const char *workload, *variant;
    enum verdict verdict;
    char digest; /* 0: it has several */
    bool is_control;
    const char *framework; /* NULL: JAX; "": it is a model's */
};

#define OF(framework_, workload_, variant_, verdict_, digest_, is_control_)              \
    {                                                                                    \
        .workload = (workload_), .variant = (variant_), .verdict = (verdict_),           \
        .digest = (digest_), .is_control = (is_control_), .framework = (framework_)      \
    }
#define SEEN(workload, variant, verdict, digest)                                         \
    OF(NULL, workload, variant, verdict, digest, false)
#define CONTROL(workload, verdict, digest)                                               \
    OF(NULL, workload, "default", verdict, digest, true)

static struct matrix_variant variants[2][VARIANTS_MAX];

/* What was SEEN (the last has no workload), as settled matrices have it. */
static struct matrix matrix_of(int which, const struct seen *seen)
{
    struct matrix m = { .variants = variants[which] };

    for (; seen->workload; seen++) {
        struct matrix_variant *v = &m.variants[m.variant_count++];

        *v = (struct matrix_variant){ .is_control = seen->is_control,
                                      .subject = SUBJECT_FRAMEWORK,
                                      .distinct_digests = seen->digest ? 1 : 3 };
        v->known = (struct variant_knowledge)VARIANT_KNOWLEDGE_INIT;
        v->known.verdict = seen->verdict;
        v->known.runs = v->known.weakest_runs = 5;
        v->known.iterations = 10;
        v->known.varied = v->known.compared = seen->verdict == VERDICT_VARIES;
        copy_text(v->key.workload, sizeof v->key.workload, seen->workload);
        copy_text(v->key.variant, sizeof v->key.variant, seen->variant);
        v->digest[0] = seen->digest ? seen->digest : 'z';
        copy_text(v->subject_name, sizeof v->subject_name,
                  seen->framework ? seen->framework : "JAX");
        if (seen->framework && !*seen->framework) {
            v->subject = SUBJECT_MODEL;
        }
    }
    return m;
}

#define MATRIX(which, ...)                                                               \
    matrix_of(which, (const struct seen[]){ __VA_ARGS__, { .workload = NULL } })

static struct operation first_of(const struct matrix *m)
{
    struct operation operation;
    int at = 0;

    assert_true(operations_next(m, "JAX", &at, &operation));
    return operation;
}

static void expect(const struct matrix *m, enum solution_state state, const char *code,
                   const char *reason)
{
    struct operation operation = first_of(m);

    assert_int_equal(operation.solution.state, state);
    assert_string_equal(operation.solution.code, code);
    assert_string_equal(operation.solution.reason, reason);
}

static void test_a_code_names_the_switches_that_cured(void **state)
{
    struct matrix m = MATRIX(0, SEEN("jax_a", "a_switch", VERDICT_REPRODUCIBLE, 'a'),
                             CONTROL("jax_a", VERDICT_VARIES, 0),
                             SEEN("jax_a", "idle", VERDICT_VARIES, 0),
                             SEEN("jax_a", "other", VERDICT_REPRODUCIBLE, 'a'));
    struct operation operation = first_of(&m);

    (void)state;
    expect(&m, SOLUTION_MEASURED, "a_switch or other", "");
    assert_int_equal(operation.count, 4);
    assert_string_equal(operation.variants[0]->key.variant, "default");
    m = MATRIX(0, CONTROL("jax_a", VERDICT_VARIES, 0),
               SEEN("jax_a", "idle", VERDICT_VARIES, 0));
    expect(&m, SOLUTION_MEASURED, "NS", "");
}

/* What raises, or is not known to a version, is no attempt that failed. */
static void test_what_cannot_be_computed_earns_nothing(void **state)
{
    struct matrix m = MATRIX(0, CONTROL("jax_a", VERDICT_VARIES, 0),
                             SEEN("jax_a", "raises", VERDICT_UNSUPPORTED, 0));

    (void)state;
    expect(&m, SOLUTION_UNSUPPORTED, "", "it varies, and no switch can be computed here");
    m = MATRIX(0, CONTROL("jax_a", VERDICT_VARIES, 0));
    expect(&m, SOLUTION_INCONCLUSIVE, "", "it varies, and no switch was measured");
    m = MATRIX(0, SEEN("jax_a", "a_switch", VERDICT_REPRODUCIBLE, 'a'));
    expect(&m, SOLUTION_INCONCLUSIVE, "", "nothing was measured without a switch");
    m = MATRIX(0, CONTROL("jax_a", VERDICT_VARIES, 0),
               SEEN("jax_a", "raises", VERDICT_UNSUPPORTED, 0),
               SEEN("jax_a", "works", VERDICT_REPRODUCIBLE, 'a'));
    expect(&m, SOLUTION_MEASURED, "works", "");
    m = MATRIX(0, CONTROL("jax_a", VERDICT_INCONCLUSIVE, 'a'),
               SEEN("jax_a", "works", VERDICT_REPRODUCIBLE, 'a'));
    assert_int_equal(first_of(&m).solution.state, SOLUTION_INCONCLUSIVE);
}

static void test_only_the_frameworks_own(void **state)
{
    struct matrix m =
        MATRIX(0, OF("", "jax_a", "model", VERDICT_REPRODUCIBLE, 'a', false),
               OF("PyTorch", "jax_b", "default", VERDICT_VARIES, 0, true),
               CONTROL("jax_c", VERDICT_VARIES, 0),
               OF("", "jax_c", "model", VERDICT_REPRODUCIBLE, 'a', false),
               CONTROL("jax_d", VERDICT_VARIES, 0));
    struct operation operation;
    int at = 0;

    (void)state;
    assert_true(operations_next(&m, "JAX", &at, &operation));
    assert_string_equal(operation.workload, "jax_c");
    assert_int_equal(operation.count, 1);
    assert_true(operations_next(&m, "JAX", &at, &operation));
    assert_string_equal(operation.workload, "jax_d");
    assert_false(operations_next(&m, "JAX", &at, &operation));
    assert_false(operations_next(&m, "JAX", &at, &operation));
}

/* Names of so many variants; the control's comes last. */
static struct matrix many_variants(int count, const char *last)
{
    static struct matrix_variant all[OPERATION_VARIANTS_MAX + 4];
    struct matrix m = { .variants = all, .variant_count = count };

    for (int i = 0; i < count; i++) {
        bool is_control = i == count - 1;
        struct seen seen = OF(NULL, "jax_a", "", VERDICT_REPRODUCIBLE, 'a', is_control);
        struct matrix one = MATRIX(0, seen);

        one.variants[0].known.verdict =
            is_control ? VERDICT_VARIES : VERDICT_REPRODUCIBLE;
        one.variants[0].known.varied = one.variants[0].known.compared = is_control;
        snprintf(one.variants[0].key.variant, sizeof one.variants[0].key.variant, "%s%d",
                 is_control ? last : "v", i);
        all[i] = one.variants[0];
    }
    return m;
}

/* What is left out may be what cures, or what varies: then nothing is earned. */
static void test_more_variants_than_fit(void **state)
{
    struct matrix m = many_variants(OPERATION_VARIANTS_MAX + 2, "default");
    struct operation operation = first_of(&m);

    (void)state;
    assert_int_equal(operation.count, OPERATION_VARIANTS_MAX);
    assert_int_equal(operation.left_out, 2);
    assert_true(operation.variants[0]->is_control);
    expect(&m, SOLUTION_INCONCLUSIVE, "", "it has more than 32 variants");
    m.variants[1].is_control = true; /* two controls: the first is the one */
    operation = first_of(&m);
    assert_string_equal(operation.variants[0]->key.variant, "v1");
    m = many_variants(10, "default");
    operation = first_of(&m);
    assert_int_equal(operation.left_out, 0);
    assert_string_equal(operation.solution.code,
                        "v0 or v1 or v2 or v3 or v4 or v5 or v6 or v7 or v8");
}

/* A user's pack may call its variants what it likes. */
static void test_names_that_read_as_other_codes(void **state)
{
    static const char *const names[] = { "DET", "NS", "NS!", "none", "a or b" };
    char reason[96];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct matrix m = MATRIX(0, CONTROL("jax_a", VERDICT_VARIES, 0),
                                 SEEN("jax_a", names[i], VERDICT_REPRODUCIBLE, 'a'));

        snprintf(reason, sizeof reason, "variant '%s' would read as another code",
                 names[i]);
        expect(&m, SOLUTION_INCONCLUSIVE, "", reason);
    }
}

static void test_a_code_is_whole_or_none(void **state)
{
    static const char a[] =
        "a23456789012345678901234567890123456789012345678901234567890123";
    static const char b[] =
        "b23456789012345678901234567890123456789012345678901234567890123";
    struct matrix m = MATRIX(0, CONTROL("jax_a", VERDICT_VARIES, 0),
                             SEEN("jax_a", a, VERDICT_REPRODUCIBLE, 'a'),
                             SEEN("jax_a", b, VERDICT_REPRODUCIBLE, 'a'));

    (void)state;
    expect(&m, SOLUTION_INCONCLUSIVE, "",
           "more switches cure it than a code has room for");
}

struct case_seen {
    const char *variant, *size;
    int version;
    int64_t runs, digests;
    char digest;
};

static struct operation_cases cases_of(const struct case_seen *seen, int count)
{
    struct operation_cases cases = { .count = 0 };

    for (int i = 0; i < count; i++) {
        struct cell cell = { .subject = SUBJECT_FRAMEWORK,
                             .subject_name = "JAX",
                             .key = { .workload = "jax_a", .version = seen[i].version },
                             .evidence = { .distinct_digests = seen[i].digests } };

        cell.evidence.runs[OUTCOME_COMPLETED] = seen[i].runs;
        copy_text(cell.key.variant, sizeof cell.key.variant, seen[i].variant);
        copy_text(cell.key.size, sizeof cell.key.size, seen[i].size);
        cell.digest[0] = seen[i].digest;
        operation_cases_add(&cases, "JAX", &cell);
        operation_cases_add(&cases, "PyTorch", &cell);
        cell.subject = SUBJECT_MODEL;
        operation_cases_add(&cases, "JAX", &cell);
    }
    return cases;
}

#define CASES(...)                                                                       \
    cases_of((const struct case_seen[]){ __VA_ARGS__ },                                  \
             sizeof((const struct case_seen[]){ __VA_ARGS__ }) /                         \
                 sizeof(struct case_seen))

static enum operation_bits bits(struct operation_cases before,
                                struct operation_cases after)
{
    struct matrix m = MATRIX(0, CONTROL("jax_a", VERDICT_VARIES, 0));
    struct operation operation;
    enum operation_bits bits;

    m.variants[0].key.version = 3;
    operation = first_of(&m);
    bits = operation_bits(&operation, &before, &after);
    operation_cases_release(&before);
    operation_cases_release(&after);
    return bits;
}

static void test_bits(void **state)
{
    const struct case_seen a = { "one", "small", 3, 2, 1, 'a' };
    const struct case_seen large = { "one", "large", 3, 2, 1, 'b' };
    const struct case_seen other = { "one", "large", 3, 2, 1, 'c' };

    (void)state;
    assert_int_equal(bits(CASES(a), CASES(a)), OPERATION_BITS_SAME);
    assert_int_equal(bits(CASES(a, large), CASES(a)), OPERATION_BITS_SAME);
    /* One size that changed is a change, whichever comes first. */
    assert_int_equal(bits(CASES(a, large), CASES(a, other)), OPERATION_BITS_OTHER);
    assert_int_equal(bits(CASES(large, a), CASES(other, a)), OPERATION_BITS_OTHER);
    assert_string_equal(operation_bits_name(OPERATION_BITS_UNKNOWN), "unknown");
    assert_string_equal(operation_bits_name(OPERATION_BITS_SAME), "same");
    assert_string_equal(operation_bits_name(OPERATION_BITS_OTHER), "other");
}

/* What varies is not seen to in one run; of another variant, size or version it is
 * another case. */
static void test_what_is_not_compared(void **state)
{
    const struct case_seen a = { "one", "small", 3, 2, 1, 'a' };
    const struct case_seen once = { "one", "small", 3, 1, 1, 'b' };
    const struct case_seen varies = { "one", "small", 3, 5, 2, 'b' };
    const struct case_seen size = { "one", "large", 3, 2, 1, 'b' };
    const struct case_seen variant = { "two", "small", 3, 2, 1, 'b' };
    const struct case_seen older = { "one", "small", 2, 2, 1, 'b' };

    (void)state;
    assert_int_equal(bits(CASES(a), CASES(once)), OPERATION_BITS_UNKNOWN);
    assert_int_equal(bits(CASES(varies), CASES(a)), OPERATION_BITS_UNKNOWN);
    assert_int_equal(bits(CASES(a), CASES(size)), OPERATION_BITS_UNKNOWN);
    assert_int_equal(bits(CASES(variant), CASES(a)), OPERATION_BITS_UNKNOWN);
    assert_int_equal(bits(CASES(older), CASES(older)), OPERATION_BITS_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_code_names_the_switches_that_cured),
        cmocka_unit_test(test_what_cannot_be_computed_earns_nothing),
        cmocka_unit_test(test_only_the_frameworks_own),
        cmocka_unit_test(test_more_variants_than_fit),
        cmocka_unit_test(test_names_that_read_as_other_codes),
        cmocka_unit_test(test_a_code_is_whole_or_none),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_what_is_not_compared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
