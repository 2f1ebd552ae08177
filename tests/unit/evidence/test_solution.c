/* Solution codes from verdicts. */
#include "daemon/evidence/solution.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/array.h"

static struct variant_knowledge known(enum verdict verdict)
{
    struct variant_knowledge k = VARIANT_KNOWLEDGE_INIT;
    struct evidence e = { .iterations = 50,
                          .devices = 1,
                          .checks = { .has_reference = true, .digests_passed = 2 } };

    e.runs[OUTCOME_COMPLETED] = 5;
    e.varied = verdict == VERDICT_VARIES;
    if (verdict != VERDICT_UNMEASURED) {
        variant_knowledge_join(&k, verdict, "because", &e);
    }
    return k;
}

static const struct profile_choice tcd_tdp[] = { { "none", "unordered" },
                                                 { "TCD", "a" },
                                                 { "TDP", "b" } };

static struct solution derive3(enum verdict none, enum verdict tcd, enum verdict tdp)
{
    struct variant_knowledge k[] = { known(none), known(tcd), known(tdp) };

    return solution_derive(tcd_tdp, k, 3);
}

static void test_codes(void **state)
{
    (void)state;
    assert_string_equal(
        derive3(VERDICT_VARIES, VERDICT_REPRODUCIBLE, VERDICT_REPRODUCIBLE).code,
        "TCD or TDP");
    assert_string_equal(
        derive3(VERDICT_VARIES, VERDICT_VARIES, VERDICT_REPRODUCIBLE).code, "TDP");
    assert_string_equal(derive3(VERDICT_VARIES, VERDICT_VARIES, VERDICT_VARIES).code,
                        "NS");
    assert_string_equal(
        derive3(VERDICT_REPRODUCIBLE, VERDICT_REPRODUCIBLE, VERDICT_REPRODUCIBLE).code,
        "DET");
    assert_string_equal(
        derive3(VERDICT_VARIES, VERDICT_UNSUPPORTED, VERDICT_REPRODUCIBLE).code, "TDP");
}

static void assert_no_code(struct solution s, enum solution_state state, const char *part)
{
    assert_int_equal(s.state, state);
    assert_string_equal(s.code, "");
    assert_non_null(strstr(s.reason, part));
}

/* A solution needs something that varied without it, NS that each recipe was tried. */
static void test_no_code_where_nothing_was_to_be_solved(void **state)
{
    const struct profile_choice raises[] = { { "none", "unordered" }, { "TDO", NULL } };
    struct variant_knowledge k[] = { known(VERDICT_REPRODUCIBLE),
                                     known(VERDICT_UNMEASURED) };

    (void)state;
    assert_no_code(derive3(VERDICT_REPRODUCIBLE, VERDICT_VARIES, VERDICT_VARIES),
                   SOLUTION_INCONCLUSIVE, "reproducible without a recipe");
    assert_no_code(derive3(VERDICT_REPRODUCIBLE, VERDICT_REPRODUCIBLE, VERDICT_VARIES),
                   SOLUTION_INCONCLUSIVE, "reproducible without a recipe");
    assert_no_code(solution_derive(raises, k, 2), SOLUTION_INCONCLUSIVE,
                   "reproducible without a recipe");
    assert_no_code(
        derive3(VERDICT_UNSUPPORTED, VERDICT_REPRODUCIBLE, VERDICT_REPRODUCIBLE),
        SOLUTION_UNSUPPORTED, "without a recipe");
    assert_no_code(derive3(VERDICT_VARIES, VERDICT_UNSUPPORTED, VERDICT_VARIES),
                   SOLUTION_UNSUPPORTED, "TCD: because");
    assert_no_code(derive3(VERDICT_VARIES, VERDICT_VARIES, VERDICT_UNSUPPORTED),
                   SOLUTION_UNSUPPORTED, "TDP: because");
}

static void test_raises(void **state)
{
    const struct profile_choice choices[] = { { "none", "unordered" }, { "TDO", NULL } };
    struct variant_knowledge varies[] = { known(VERDICT_VARIES),
                                          known(VERDICT_UNMEASURED) };
    struct variant_knowledge unmeasured[] = { known(VERDICT_UNMEASURED),
                                              known(VERDICT_UNMEASURED) };

    (void)state;
    assert_string_equal(solution_derive(choices, varies, 2).code, "NS!");
    assert_int_equal(solution_derive(choices, varies, 2).state, SOLUTION_DECLARED);
    assert_non_null(
        strstr(solution_derive(choices, varies, 2).reason, "none was seen to"));
    assert_int_equal(solution_derive(choices, unmeasured, 2).state, SOLUTION_UNMEASURED);
}

/* Without recipes none raises, and without choices nothing is asked. */
static void test_no_recipes(void **state)
{
    struct variant_knowledge varies = known(VERDICT_VARIES);
    struct solution none = solution_derive(tcd_tdp, &varies, 1);
    struct solution nothing = solution_derive(NULL, NULL, 0);

    (void)state;
    assert_int_equal(none.state, SOLUTION_MEASURED);
    assert_string_equal(none.code, "NS");
    assert_int_equal(none.runs, 5);
    assert_int_equal(nothing.state, SOLUTION_UNMEASURED);
    assert_string_equal(nothing.code, "");
    assert_string_equal(nothing.reason, "");
}

/* What was never seen to be reproducible is bounded by nothing. */
static void test_nothing_reproducible_has_no_bound(void **state)
{
    (void)state;
    assert_true(
        derive3(VERDICT_VARIES, VERDICT_VARIES, VERDICT_VARIES).difference_bound == 1);
    assert_true(
        derive3(VERDICT_UNMEASURED, VERDICT_VARIES, VERDICT_VARIES).difference_bound ==
        1);
    assert_true(solution_derive(NULL, NULL, 0).difference_bound == 1);
}

/* Two hosts that differ while each agrees with itself are no race: nothing was seen that
 * a recipe could not solve. */
static void test_no_solution_needs_variation_of_its_own(void **state)
{
    const struct profile_choice raises[] = { { "none", "unordered" }, { "TDO", NULL } };

    (void)state;
    for (int unlike = 0; unlike < 3; unlike++) {
        struct variant_knowledge k[] = { known(VERDICT_VARIES), known(VERDICT_VARIES),
                                         known(VERDICT_VARIES) };

        assert_string_equal(solution_derive(tcd_tdp, k, 3).code, "NS");
        k[unlike].varied = false;
        assert_no_code(solution_derive(tcd_tdp, k, 3), SOLUTION_INCONCLUSIVE,
                       unlike == 0   ? "unordered: because"
                       : unlike == 1 ? "a: because"
                                     : "b: because");
        k[0].varied = false;
        assert_no_code(solution_derive(raises, k, 2), SOLUTION_INCONCLUSIVE,
                       "unordered: because");
        k[1] = known(VERDICT_REPRODUCIBLE);
        k[2].varied = false; /* what does not help is no matter where another does */
        assert_string_equal(solution_derive(tcd_tdp, k, 3).code, "TCD");
    }
}

/* One case that varied is enough, whichever it is. */
static void test_join_remembers_that_a_case_varied(void **state)
{
    (void)state;
    for (int alike = 0; alike < 2; alike++) {
        struct variant_knowledge k = VARIANT_KNOWLEDGE_INIT;

        for (int i = 0; i < 3; i++) {
            struct evidence e = { .iterations = 50,
                                  .varied = alike && i == 1,
                                  .checks = { .has_reference = true,
                                              .digests_passed = 2 } };

            e.runs[OUTCOME_COMPLETED] = 5;
            variant_knowledge_join(&k, VERDICT_VARIES, "because", &e);
        }
        assert_int_equal(k.varied, alike);
    }
}

static void expect_no_code(const struct variant_knowledge *k, const char *words)
{
    const struct variant_knowledge known[] = { *k, *k, *k };
    struct solution s = solution_derive(tcd_tdp, known, 3);

    assert_int_equal(s.state, words ? SOLUTION_INCONCLUSIVE : SOLUTION_MEASURED);
    assert_string_equal(s.code, words ? "" : "NS");
    if (words && !strstr(s.reason, words)) {
        fail_msg("%s", s.reason);
    }
}

/* Wrong numbers that vary earn no NS; one case that was compared is enough. */
static void test_what_varies_was_compared(void **state)
{
    (void)state;
    for (int passed = 0; passed < 4; passed++) {
        struct variant_knowledge k = VARIANT_KNOWLEDGE_INIT;

        for (int i = 0; i < 2; i++) {
            struct evidence e = { .iterations = 50,
                                  .varied = true,
                                  .checks = { .has_reference = true,
                                              .digests_passed =
                                                  passed >> i & 1 ? 2 : 1 } };

            e.runs[OUTCOME_COMPLETED] = 5;
            variant_knowledge_join(&k, VERDICT_VARIES, "2 digests", &e);
        }
        assert_int_equal(k.compared, passed != 0);
        expect_no_code(&k, passed ? NULL
                                  : ": 2 digests, fewer than two of them compared with "
                                    "the float64 reference");
    }
}

/* A command that prints random numbers varies, and nobody saw it compute anything: it
 * earns no NS, and nothing that a recipe could solve. */
static void test_a_command_that_varies_was_challenged(void **state)
{
    static const struct {
        struct challenges challenges;
        bool known;
    } cases[] = { { { .passed = 0 }, false },
                  { { .passed = 1 }, true },
                  { { .failed = 3 }, false },
                  { { .repeated = 1 }, false },
                  { { .passed = 1, .repeated = 3 }, true },
                  { { .passed = 1, .repeated = 4 }, false },
                  { { .passed = 9, .unchanged = 1 }, false } };

    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct variant_knowledge k = VARIANT_KNOWLEDGE_INIT;
        struct evidence e = { .varied = true, .challenges = cases[i].challenges };
        struct variant_knowledge solved[3];

        e.runs[OUTCOME_COMPLETED] = 5;
        variant_knowledge_join(&k, VERDICT_VARIES, "2 digests", &e);
        expect_no_code(&k, cases[i].known
                               ? NULL
                               : "unordered: 2 digests, and no challenge shows "
                                 "that its command computes from its inputs");
        solved[0] = k;
        solved[1] = solved[2] = known(VERDICT_REPRODUCIBLE);
        assert_string_equal(solution_derive(tcd_tdp, solved, 3).code,
                            cases[i].known ? "TCD or TDP" : "");
    }
}

/* A case that was compared and did not vary does not vouch for another that varied. */
static void test_what_varied_is_what_was_compared(void **state)
{
    (void)state;
    for (int compared = 0; compared < 2; compared++) {
        struct variant_knowledge k[3] = { VARIANT_KNOWLEDGE_INIT };

        for (int i = 0; i < 2; i++) {
            struct evidence e = { .varied = i == 0,
                                  .checks = { .has_reference = true,
                                              .digests_passed =
                                                  i == 1 || compared ? 2 : 1 } };

            variant_knowledge_join(&k[0], VERDICT_VARIES, "2 digests", &e);
        }
        assert_true(k[0].compared);
        assert_int_equal(k[0].varied, compared);
        k[1] = k[2] = k[0];
        assert_string_equal(solution_derive(tcd_tdp, k, 3).code, compared ? "NS" : "");
    }
}

/* Whatever is not settled leaves no code, whichever choice it is. */
static void test_no_code_without_proof(void **state)
{
    static const struct {
        enum verdict verdict;
        enum solution_state state;
    } obstacles[] = { { VERDICT_UNMEASURED, SOLUTION_UNMEASURED },
                      { VERDICT_INCONCLUSIVE, SOLUTION_INCONCLUSIVE },
                      { VERDICT_STALE, SOLUTION_STALE },
                      { VERDICT_FAILING, SOLUTION_FAILING } };

    (void)state;
    for (int o = 0; o < 4; o++) {
        for (int place = 0; place < 3; place++) {
            enum verdict v[3] = { VERDICT_VARIES, VERDICT_REPRODUCIBLE,
                                  VERDICT_REPRODUCIBLE };
            struct solution s;

            v[place] = obstacles[o].verdict;
            s = derive3(v[0], v[1], v[2]);
            assert_int_equal(s.state, obstacles[o].state);
            assert_string_equal(s.code, "");
            assert_true(s.reason[0]);
        }
    }
}

/* Of several obstacles the gravest is told, wherever it stands. */
static void test_the_gravest_obstacle_is_told(void **state)
{
    static const enum verdict gravest_first[] = { VERDICT_FAILING, VERDICT_UNMEASURED,
                                                  VERDICT_INCONCLUSIVE, VERDICT_STALE };
    static const enum solution_state states[] = { SOLUTION_FAILING, SOLUTION_UNMEASURED,
                                                  SOLUTION_INCONCLUSIVE, SOLUTION_STALE };

    (void)state;
    for (int grave = 0; grave < 4; grave++) {
        for (int other = grave; other < 4; other++) {
            enum verdict g = gravest_first[grave];
            enum verdict o = gravest_first[other];

            assert_int_equal(derive3(VERDICT_VARIES, g, o).state, states[grave]);
            assert_int_equal(derive3(VERDICT_VARIES, o, g).state, states[grave]);
            assert_int_equal(derive3(o, VERDICT_VARIES, g).state, states[grave]);
        }
    }
}

static void test_all_unsupported(void **state)
{
    const struct profile_choice raises[] = { { "none", "unordered" }, { "TDO", NULL } };
    struct variant_knowledge k[] = { known(VERDICT_UNSUPPORTED),
                                     known(VERDICT_UNMEASURED) };

    (void)state;
    assert_no_code(derive3(VERDICT_UNSUPPORTED, VERDICT_UNSUPPORTED, VERDICT_UNSUPPORTED),
                   SOLUTION_UNSUPPORTED, "no variant can be computed here");
    assert_no_code(solution_derive(raises, k, 2), SOLUTION_UNSUPPORTED,
                   "no variant can be computed here");
}

/* Evidence is summed over variants, each once, whichever choices share it. */
static void test_evidence_of_a_shared_variant_counts_once(void **state)
{
    static const struct {
        const char *variants[3];
        int variants_seen, runs, iterations, devices;
    } cases[] = { { { "u", "o", "p" }, 3, 7 + 11 + 13, 1 + 2 + 4, 5 },
                  { { "u", "o", "o" }, 2, 7 + 11, 1 + 2, 5 },
                  { { "u", "u", "p" }, 2, 7 + 13, 1 + 4, 4 },
                  { { "u", "o", "u" }, 2, 7 + 11, 1 + 2, 5 },
                  { { "u", "u", "u" }, 1, 7, 1, 3 },
                  { { "u", NULL, "p" }, 2, 7 + 13, 1 + 4, 4 } };

    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct profile_choice choices[] = { { "none", cases[i].variants[0] },
                                            { "TCD", cases[i].variants[1] },
                                            { "TDP", cases[i].variants[2] } };
        struct variant_knowledge k[] = { { .verdict = VERDICT_VARIES,
                                           .compared = true,
                                           .varied = true,
                                           .runs = 7,
                                           .iterations = 1,
                                           .devices = 3 },
                                         { .verdict = VERDICT_REPRODUCIBLE,
                                           .runs = 11,
                                           .iterations = 2,
                                           .devices = 5,
                                           .weakest_runs = 5 },
                                         { .verdict = VERDICT_REPRODUCIBLE,
                                           .runs = 13,
                                           .iterations = 4,
                                           .devices = 4,
                                           .weakest_runs = 5 } };
        struct solution s = solution_derive(choices, k, 3);

        assert_int_equal(s.variants, cases[i].variants_seen);
        assert_int_equal(s.runs, cases[i].runs);
        assert_int_equal(s.iterations, cases[i].iterations);
        assert_int_equal(s.devices, cases[i].devices);
        assert_true(s.difference_bound == verdict_difference_bound(5));
    }
}

/* NS and DET of recipes that change nothing are the fact that "none" shows already. */
static void test_recipes_that_change_nothing_are_one_fact(void **state)
{
    static const struct profile_choice same[] = { { "none", "a" },
                                                  { "TCD", "a" },
                                                  { "TDP", "a" } };
    static const struct profile_choice raises[] = { { "none", "a" },
                                                    { "TDO", NULL },
                                                    { "TDO+FE", "a" } };
    struct variant_knowledge varies[] = { known(VERDICT_VARIES), known(VERDICT_VARIES),
                                          known(VERDICT_VARIES) };
    struct variant_knowledge repeats[] = { known(VERDICT_REPRODUCIBLE),
                                           known(VERDICT_REPRODUCIBLE),
                                           known(VERDICT_REPRODUCIBLE) };
    struct variant_knowledge unknown[3] = { VARIANT_KNOWLEDGE_INIT,
                                            VARIANT_KNOWLEDGE_INIT,
                                            VARIANT_KNOWLEDGE_INIT };

    (void)state;
    assert_true(solution_derive(same, varies, 3).one_fact);
    assert_true(solution_derive(same, repeats, 3).one_fact);
    assert_false(solution_derive(same, varies, 1).one_fact);
    assert_false(solution_derive(same, unknown, 3).one_fact);
    assert_false(solution_derive(raises, varies, 3).one_fact);
    assert_false(derive3(VERDICT_VARIES, VERDICT_VARIES, VERDICT_VARIES).one_fact);
}

/* The bound of a code is that of the recipe with the fewest runs, which may be any. */
static void test_the_weakest_recipe_bounds_the_code(void **state)
{
    (void)state;
    for (int weak = 1; weak < 3; weak++) {
        struct variant_knowledge k[] = { known(VERDICT_VARIES),
                                         known(VERDICT_REPRODUCIBLE),
                                         known(VERDICT_REPRODUCIBLE) };

        k[weak].weakest_runs = 3;
        assert_true(solution_derive(tcd_tdp, k, 3).difference_bound ==
                    verdict_difference_bound(3));
    }
}

/* Joins a case of verdict BY to knowledge of verdict OF: which of the two it has then. */
static enum verdict joined(enum verdict of, enum verdict by)
{
    struct variant_knowledge k = known(of);
    struct evidence e = { .iterations = 10 };

    e.runs[OUTCOME_COMPLETED] = 2;
    variant_knowledge_join(&k, by, "by", &e);
    return k.verdict;
}

static void test_join_has_an_order(void **state)
{
    static const enum verdict strongest_first[] = {
        VERDICT_VARIES,       VERDICT_FAILING,     VERDICT_REPRODUCIBLE, VERDICT_STALE,
        VERDICT_INCONCLUSIVE, VERDICT_UNSUPPORTED, VERDICT_UNMEASURED,
    };

    (void)state;
    for (int strong = 0; strong < COUNT_OF(strongest_first); strong++) {
        for (int weak = strong; weak < COUNT_OF(strongest_first); weak++) {
            enum verdict s = strongest_first[strong];
            enum verdict w = strongest_first[weak];

            assert_int_equal(joined(s, w), s);
            assert_int_equal(joined(w, s), s);
        }
    }
}

static void test_join_is_as_weak_as_its_weakest_case(void **state)
{
    struct variant_knowledge k = known(VERDICT_REPRODUCIBLE);
    struct evidence e = { .iterations = 20, .devices = 1 };

    (void)state;
    e.runs[OUTCOME_COMPLETED] = 2;
    variant_knowledge_join(&k, VERDICT_REPRODUCIBLE, "weak", &e);
    e.runs[OUTCOME_COMPLETED] = 9;
    variant_knowledge_join(&k, VERDICT_REPRODUCIBLE, "strong", &e);
    assert_int_equal(k.weakest_runs, 2);
    assert_string_equal(k.reason, "weak");
    e.runs[OUTCOME_COMPLETED] = 2;
    variant_knowledge_join(&k, VERDICT_REPRODUCIBLE, "as weak, but later", &e);
    assert_string_equal(k.reason, "weak");
    assert_int_equal(k.cases, 4);
    assert_int_equal(k.iterations, 110);
}

static void test_join_keeps_the_worst_and_the_weakest(void **state)
{
    struct variant_knowledge k = known(VERDICT_REPRODUCIBLE);
    struct evidence weak = { .iterations = 20, .devices = 2 };

    (void)state;
    weak.runs[OUTCOME_COMPLETED] = 2;
    variant_knowledge_join(&k, VERDICT_REPRODUCIBLE, "weak", &weak);
    assert_int_equal(k.runs, 7);
    assert_int_equal(k.weakest_runs, 2);
    assert_int_equal(k.devices, 2);
    variant_knowledge_join(&k, VERDICT_INCONCLUSIVE, "later", &weak);
    assert_int_equal(k.verdict, VERDICT_REPRODUCIBLE);
    variant_knowledge_join(&k, VERDICT_FAILING, "crash", &weak);
    assert_int_equal(k.verdict, VERDICT_FAILING);
    variant_knowledge_join(&k, VERDICT_VARIES, "two digests", &weak);
    assert_int_equal(k.verdict, VERDICT_VARIES);
    assert_string_equal(k.reason, "two digests");
    assert_int_equal(k.runs, 2);
}

/* Where it is not known what happens without a recipe, no recipe solves anything. */
static void test_no_code_without_the_default(void **state)
{
    static const struct profile_choice raises[] = { { "none", NULL }, { "TCD", "a" } };
    struct variant_knowledge k[] = { VARIANT_KNOWLEDGE_INIT,
                                     known(VERDICT_REPRODUCIBLE) };
    struct solution s = solution_derive(raises, k, 2);

    (void)state;
    assert_no_code(s, SOLUTION_UNSUPPORTED, "without a recipe is not known");
}

/* A code of those that agree is partial; without names there is none. */
static void test_devices_that_disagree(void **state)
{
    const struct profile_choice choices[] = { { .recipe = "none",
                                                .variant = "unordered" },
                                              { .recipe = "TCD", .variant = "ordered" } };
    struct variant_knowledge known[] = { VARIANT_KNOWLEDGE_INIT, VARIANT_KNOWLEDGE_INIT };
    struct agreeing agreeing = { VERDICT_REPRODUCIBLE, 7, 35, 350 };
    struct evidence e = { .devices = 8,
                          .distinct_digests = 2,
                          .varied = true,
                          .checks = { .has_reference = true, .digests_passed = 2 } };
    struct solution s;

    (void)state;
    e.runs[OUTCOME_COMPLETED] = 40;
    variant_knowledge_join(&known[0], VERDICT_VARIES, "2 digests", &e);
    variant_knowledge_dissent(&known[1], &agreeing, "GPU-3 dissents", &e);
    s = solution_derive(choices, known, 2);
    assert_int_equal(s.state, SOLUTION_PARTIAL);
    assert_string_equal(s.code, "TCD");
    assert_string_equal(s.reason, "on 7 of 8 devices: ordered: GPU-3 dissents");
    agreeing.verdict = VERDICT_UNMEASURED;
    variant_knowledge_dissent(&known[1], &agreeing, "no majority", &e);
    s = solution_derive(choices, known, 2);
    assert_int_equal(s.state, SOLUTION_INCONCLUSIVE);
    assert_string_equal(s.code, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices_that_disagree),
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_no_code_where_nothing_was_to_be_solved),
        cmocka_unit_test(test_raises),
        cmocka_unit_test(test_no_recipes),
        cmocka_unit_test(test_nothing_reproducible_has_no_bound),
        cmocka_unit_test(test_no_solution_needs_variation_of_its_own),
        cmocka_unit_test(test_join_remembers_that_a_case_varied),
        cmocka_unit_test(test_what_varies_was_compared),
        cmocka_unit_test(test_a_command_that_varies_was_challenged),
        cmocka_unit_test(test_what_varied_is_what_was_compared),
        cmocka_unit_test(test_no_code_without_proof),
        cmocka_unit_test(test_the_gravest_obstacle_is_told),
        cmocka_unit_test(test_all_unsupported),
        cmocka_unit_test(test_evidence_of_a_shared_variant_counts_once),
        cmocka_unit_test(test_recipes_that_change_nothing_are_one_fact),
        cmocka_unit_test(test_the_weakest_recipe_bounds_the_code),
        cmocka_unit_test(test_join_has_an_order),
        cmocka_unit_test(test_join_is_as_weak_as_its_weakest_case),
        cmocka_unit_test(test_join_keeps_the_worst_and_the_weakest),
        cmocka_unit_test(test_no_code_without_the_default),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
