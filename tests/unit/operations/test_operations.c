/* Operations of frameworks: which switch a code names, and what no code is earned by. */
#include "daemon/operations/operations.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

static void test_more_variants_than_fit(void **state)
{
    struct seen seen[VARIANTS_MAX] = { { .workload = NULL } };
    static const char *const names[] = {
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"
    };
    struct operation operation;
    struct matrix m;

    (void)state;
    for (int i = 0; i < 10; i++) {
        seen[i] = (struct seen)SEEN("jax_a", names[i], VERDICT_REPRODUCIBLE, 'a');
    }
    m = matrix_of(0, seen);
    operation = first_of(&m);
    assert_int_equal(operation.count, OPERATION_VARIANTS_MAX);
}

static enum operation_bits bits(const struct matrix *before, const struct matrix *after)
{
    struct operation left = first_of(before), right = first_of(after);

    return operation_bits(&left, &right);
}

static void test_bits(void **state)
{
    struct matrix a = MATRIX(0, CONTROL("jax_a", VERDICT_VARIES, 0),
                             SEEN("jax_a", "one", VERDICT_REPRODUCIBLE, 'a'),
                             SEEN("jax_a", "two", VERDICT_REPRODUCIBLE, 'b'));
    struct matrix b = MATRIX(1, CONTROL("jax_a", VERDICT_VARIES, 0),
                             SEEN("jax_a", "one", VERDICT_REPRODUCIBLE, 'a'));

    (void)state;
    assert_int_equal(bits(&a, &b), OPERATION_BITS_SAME);
    b = MATRIX(1, SEEN("jax_a", "one", VERDICT_REPRODUCIBLE, 'a'),
               SEEN("jax_a", "two", VERDICT_REPRODUCIBLE, 'c'));
    assert_int_equal(bits(&a, &b), OPERATION_BITS_OTHER);
    b = MATRIX(1, SEEN("jax_a", "one", VERDICT_REPRODUCIBLE, 'c'),
               SEEN("jax_a", "two", VERDICT_REPRODUCIBLE, 'b'));
    assert_int_equal(bits(&a, &b), OPERATION_BITS_OTHER);
    b = MATRIX(1, CONTROL("jax_a", VERDICT_VARIES, 0),
               SEEN("jax_a", "three", VERDICT_REPRODUCIBLE, 'a'));
    assert_int_equal(bits(&a, &b), OPERATION_BITS_UNKNOWN);
    assert_string_equal(operation_bits_name(OPERATION_BITS_UNKNOWN), "unknown");
    assert_string_equal(operation_bits_name(OPERATION_BITS_SAME), "same");
    assert_string_equal(operation_bits_name(OPERATION_BITS_OTHER), "other");
}

/* Of another size, or version, it is another case. */
static void test_other_cases_are_not_compared(void **state)
{
    struct matrix a = MATRIX(0, SEEN("jax_a", "one", VERDICT_REPRODUCIBLE, 'a'));
    struct matrix b = MATRIX(1, SEEN("jax_a", "one", VERDICT_REPRODUCIBLE, 'c'));

    (void)state;
    assert_int_equal(bits(&a, &b), OPERATION_BITS_OTHER);
    variants[1][0].key.version = 2;
    assert_int_equal(bits(&a, &b), OPERATION_BITS_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_code_names_the_switches_that_cured),
        cmocka_unit_test(test_what_cannot_be_computed_earns_nothing),
        cmocka_unit_test(test_only_the_frameworks_own),
        cmocka_unit_test(test_more_variants_than_fit),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_other_cases_are_not_compared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
