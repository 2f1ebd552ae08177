/* Commands of another service's configuration: their challenges come along, and their
 * name is not taken for one of ours. */
#include "tests/unit/db/challenges_fixture.h"
#include "tests/unit/db/peers_fixture.h"

static struct cell cell_of(struct fixture *f, const char *variant)
{
    return fixture_cell(f, variant);
}

static void test_what_a_command_earned_is_earned_here(void **state)
{
    struct peers_fixture *p = *state;
    struct cell here, there;

    see_device(p->there, "cpu:a", "{}", 1);
    make_steady(p->there);
    store_run(p->there, challenge(5, STEADY));
    assert_int_equal(pull(p, "east", 2).taken, 5);
    here = cell_of(p->here, "ordered");
    there = cell_of(p->there, "ordered");
    assert_int_equal(there.verdict, VERDICT_REPRODUCIBLE);
    assert_int_equal(here.verdict, VERDICT_REPRODUCIBLE);
    assert_true(there.evidence.challenges.passed > 0);
    assert_int_equal(here.evidence.challenges.passed, there.evidence.challenges.passed);
    assert_string_equal(here.key.workload, "east/conv_wgrad");
    fixture_check_cells(p->here);
    assert_clean(p->here, 0);
}

/* Without a challenge it is not, whatever the other service says. */
static void test_without_a_challenge_it_is_not(void **state)
{
    struct peers_fixture *p = *state;

    see_device(p->there, "cpu:a", "{}", 1);
    insert_items(p->there, false);
    store_run(p->there, run_of(1, CONTROL));
    store_run(p->there, run_of(3, STEADY));
    store_run(p->there, run_of(4, STEADY));
    assert_int_equal(pull(p, "east", 2).taken, 3);
    assert_int_equal(cell_of(p->here, "ordered").verdict, VERDICT_INCONCLUSIVE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PEERS_TEST(test_what_a_command_earned_is_earned_here),
        PEERS_TEST(test_without_a_challenge_it_is_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
