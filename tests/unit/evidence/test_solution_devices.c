/* Solutions where devices disagree: a code holds for those that agree, and is as weak as
 * its weakest case. */
#include "daemon/evidence/solution.h"

#include "tests/unit/evidence/matrix_fixture.h"

static const struct evidence all = { .devices = 8, .distinct_digests = 2 };

static const struct profile_choice choices[] = {
    { .recipe = "none", .variant = "unordered" },
    { .recipe = "TCD", .variant = "ordered" }
};

static void dissent(struct variant_knowledge *k, enum verdict verdict, int64_t agreeing)
{
    struct agreeing a = { verdict, agreeing, 35, 350 };

    variant_knowledge_dissent(k, &a, "one dissents", &all);
}

static struct solution solve(const struct variant_knowledge *k)
{
    struct variant_knowledge known[] = { VARIANT_KNOWLEDGE_INIT, *k };
    struct evidence varied = { .devices = 8,
                               .distinct_digests = 2,
                               .varied = true,
                               .checks = { .has_reference = true, .digests_passed = 2 } };

    varied.runs[OUTCOME_COMPLETED] = 40;
    variant_knowledge_join(&known[0], VERDICT_VARIES, "2 digests", &varied);
    return solution_derive(choices, known, 2);
}

/* That a case of it varies is worse than that devices disagree. */
static void test_what_varies_stays_so(void **state)
{
    struct variant_knowledge k = VARIANT_KNOWLEDGE_INIT;

    (void)state;
    variant_knowledge_join(&k, VERDICT_VARIES, "2 digests", &all);
    dissent(&k, VERDICT_REPRODUCIBLE, 7);
    assert_int_equal(k.verdict, VERDICT_VARIES);
    assert_int_equal(k.cases, 1);
    assert_string_equal(k.reason, "2 digests");
}

/* In whatever order the cases come. */
static void test_the_weakest_case_counts(void **state)
{
    struct variant_knowledge k = VARIANT_KNOWLEDGE_INIT;

    (void)state;
    dissent(&k, VERDICT_REPRODUCIBLE, 7);
    dissent(&k, VERDICT_REPRODUCIBLE, 5);
    dissent(&k, VERDICT_REPRODUCIBLE, 6);
    assert_int_equal(k.devices, 5);
    assert_int_equal(k.of_devices, 8);
    assert_int_equal(solve(&k).state, SOLUTION_PARTIAL);
    dissent(&k, VERDICT_STALE, 7);
    dissent(&k, VERDICT_REPRODUCIBLE, 7);
    assert_int_equal(k.agreeing, VERDICT_STALE);
    assert_int_equal(solve(&k).state, SOLUTION_STALE);
    assert_string_equal(solve(&k).code, "");
}

/* The matrix asks those that agree, and says what it is of. */
static void test_a_cell_whose_devices_disagree(void **state)
{
    struct matrix m = begin(false, 90 * (int64_t)DAY_MS);
    struct cell cell = cell_of("scatter_add", "ordered", VERDICT_DEVICES_DISAGREE, 2);

    (void)state;
    cell.agreeing = (struct agreeing){ VERDICT_REPRODUCIBLE, 7, 35, 350 };
    cell.evidence.devices = 8;
    cell.evidence.distinct_digests = 2;
    matrix_add(&m, &cell);
    assert_int_equal(m.variant_count, 1);
    assert_int_equal(m.variants[0].known.verdict, VERDICT_DEVICES_DISAGREE);
    assert_int_equal(m.variants[0].known.agreeing, VERDICT_REPRODUCIBLE);
    assert_int_equal(m.variants[0].known.devices, 7);
    assert_int_equal(m.variants[0].known.of_devices, 8);
    assert_int_equal(m.variants[0].cell, 2);
    matrix_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_varies_stays_so),
        cmocka_unit_test(test_the_weakest_case_counts),
        cmocka_unit_test(test_a_cell_whose_devices_disagree),
    };

    return cmocka_run_group_tests(tests, load_profiles, free_profiles);
}
