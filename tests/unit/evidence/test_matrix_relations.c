/* What the matrix says of variants whose bits must equal another's, or differ. */
#include "tests/unit/evidence/matrix_fixture.h"

#include <jansson.h>

#include "api/render/matrix.h"
#include "daemon/base/array.h"

static json_t *variant_json(const char *name, const char *must)
{
    json_t *variant =
        json_pack("{s:s,s:s,s:s,s:s,s:s,s:b}", "name", name, "summary", "", "models", "",
                  "algorithm", "", "subject", "model", "control", 0);

    if (must) {
        json_object_set_new(variant, must, json_string("ordered"));
    }
    return variant;
}

/* A workload whose `resumed` must be `ordered`, and whose `less` must not. */
static struct relations expected_of_a_checkpoint(void)
{
    json_t *json = json_pack(
        "[{s:s,s:i,s:s,s:s,s:s,s:[o,o,o],s:[{s:s,s:s}],s:[s],s:s,s:s}]", "workload", "w",
        "version", 1, "backend", "cpu", "title", "", "summary", "", "variants",
        variant_json("ordered", NULL), variant_json("resumed", "equals"),
        variant_json("less", "differs"), "sizes", "name", "small", "description", "",
        "dtypes", "float32", "weight_sum", "", "no_control", "x");
    struct catalogue *catalogue = catalogue_new();
    struct relations relations;
    struct err err;

    assert_int_equal(catalogue_add(catalogue, json, &err), ERR_OK);
    relations_init(&relations, catalogue);
    json_decref(json);
    catalogue_free(catalogue);
    return relations;
}

static struct cell gave(char digest, const char *variant, const char *size)
{
    struct cell cell = cell_of("w", variant, VERDICT_REPRODUCIBLE, 1);

    copy_text(cell.key.size, sizeof cell.key.size, size);
    cell.digest[0] = digest;
    return cell;
}

/* What is said of VARIANT after CELLS, the last of which is without a workload. */
static void expect_relation(const char *variant, const char *text,
                            const struct cell *cells)
{
    struct matrix m = begin(false, 0);
    const struct matrix_variant *v;
    struct buf buf = BUF_INIT;

    m.relations = expected_of_a_checkpoint();
    for (; cells->key.workload[0]; cells++) {
        matrix_add(&m, cells);
    }
    matrix_settle(&m);
    v = matrix_find(&m, "w", variant, SUBJECT_MODEL);
    assert_string_equal(v->relation->other, "ordered");
    matrix_facts_text(&m, &buf);
    assert_non_null(strstr(buf.data, text));
    buf_release(&buf);
    matrix_release(&m);
}

#define EXPECT_RELATION(variant, text, ...)                                              \
    expect_relation(variant, text, (const struct cell[]){ __VA_ARGS__, { .id = 0 } })

static void test_what_must_equal_or_differ(void **state)
{
    (void)state;
    EXPECT_RELATION("less", "differs from ordered, as it must", gave('a', "less", "s"),
                    gave('b', "ordered", "s"));
    EXPECT_RELATION("less", "EQUALS ordered (s, float32, seed 1), but must differ",
                    gave('a', "less", "s"), gave('a', "ordered", "s"));
    EXPECT_RELATION("resumed", "equals ordered, as it must", gave('a', "ordered", "s"),
                    gave('a', "resumed", "s"));
    EXPECT_RELATION("resumed",
                    "DIFFERS from ordered (s, float32, seed 1), but must equal",
                    gave('a', "ordered", "s"), gave('b', "resumed", "s"));
}

static void test_what_must_equal_or_differ_is_not_known_yet(void **state)
{
    static const char unknown[] = "must differ from ordered: not known yet";
    struct cell less = gave('a', "less", "s");
    struct cell ordered = gave('b', "ordered", "s");

    (void)state;
    EXPECT_RELATION("resumed", "must equal ordered: not known yet",
                    gave('a', "resumed", "s"));
    EXPECT_RELATION("less", unknown, less);
    EXPECT_RELATION("less", unknown, less, gave('b', "ordered", "m"));
    less.evidence.distinct_digests = 2;
    EXPECT_RELATION("less", unknown, less, ordered);
    less = gave('a', "less", "s");
    ordered.digest[0] = '\0';
    EXPECT_RELATION("less", unknown, less, ordered);
    ordered = gave('b', "ordered", "s");
    ordered.key.seed = 2;
    EXPECT_RELATION("less", unknown, less, ordered);
}

static void test_bits_that_may_be_wrong_are_not_compared(void **state)
{
    static const struct checks unknown[] = {
        { .has_reference = true },
        { .has_reference = true, .passed = 1, .failed = 1 },
    };
    static const struct checks known = { .has_reference = true, .passed = 1 };

    (void)state;
    for (int i = 0; i < COUNT_OF(unknown); i++) {
        struct cell less = gave('a', "less", "s");
        struct cell ordered = gave('b', "ordered", "s");

        less.evidence.checks = known;
        ordered.evidence.checks = known;
        EXPECT_RELATION("less", "differs from ordered, as it must", less, ordered);
        less.evidence.checks = unknown[i];
        EXPECT_RELATION("less", "must differ from ordered: not known yet", less, ordered);
        less.evidence.checks = known;
        ordered.evidence.checks = unknown[i];
        EXPECT_RELATION("less", "must differ from ordered: not known yet", less, ordered);
    }
}

static void test_one_case_that_departs_is_named(void **state)
{
    (void)state;
    EXPECT_RELATION("less", "EQUALS ordered (m, float32, seed 1), but must differ",
                    gave('a', "less", "l"), gave('c', "less", "m"),
                    gave('a', "less", "s"), gave('b', "ordered", "l"),
                    gave('c', "ordered", "m"), gave('b', "ordered", "s"));
    EXPECT_RELATION("less", "differs from ordered, as it must", gave('a', "less", "s"),
                    gave('b', "ordered", "l"), gave('b', "ordered", "s"));
}

/* Whichever of the two cases has fewer runs, and is the one whose digest is shown. */
static void test_a_case_that_departs_is_told(void **state)
{
    (void)state;
    for (int weakest = 0; weakest < 2; weakest++) {
        struct matrix m = begin(false, 0);

        m.relations = expected_of_a_checkpoint();
        for (int i = 0; i < 4; i++) {
            struct cell cell =
                cell_of("w", i < 2 ? "ordered" : "resumed", VERDICT_REPRODUCIBLE, i + 1);

            cell.key.seed = (uint64_t)(i % 2) + 1;
            cell.evidence.runs[OUTCOME_COMPLETED] = i % 2 == weakest ? 2 : 5;
            cell.digest[0] = i == 3 ? 'f' : '0';
            matrix_add(&m, &cell);
        }
        matrix_settle(&m);
        assert_int_equal(matrix_find(&m, "w", "resumed", SUBJECT_MODEL)->seen,
                         RELATION_DIFFERENT);
        matrix_release(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_must_equal_or_differ),
        cmocka_unit_test(test_what_must_equal_or_differ_is_not_known_yet),
        cmocka_unit_test(test_bits_that_may_be_wrong_are_not_compared),
        cmocka_unit_test(test_one_case_that_departs_is_named),
        cmocka_unit_test(test_a_case_that_departs_is_told),
    };

    return cmocka_run_group_tests(tests, load_profiles, free_profiles);
}
