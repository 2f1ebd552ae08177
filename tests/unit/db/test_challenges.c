/* Challenges (db/cases/challenges.h): who gets one, and what they show of a command. */
#include "tests/unit/db/challenges_fixture.h"

#include "daemon/base/array.h"
#include "db/inputs.h"
#include "db/tx.h"

static void test_a_command_is_green_once_it_was_challenged(void **state)
{
    struct fixture *f = *state;

    make_steady(f);
    assert_cell(f, "ordered", VERDICT_INCONCLUSIVE, "another seed was not tried yet");
    assert_int_equal(store_run(f, challenge(5, STEADY)).effect.verdict,
                     VERDICT_REPRODUCIBLE);
    assert_cell(f, "ordered", VERDICT_REPRODUCIBLE,
                "another seed gave another digest, as a cache by seed would, too");
    assert_challenges(f, 1, 0, 0, 0);
    check_all(f);
}

/* Nobody compares what a framework computes with a reference, so it is challenged in its
 * stack as a command is, and not asked to check itself. */
static void test_a_framework_is_green_once_it_was_challenged(void **state)
{
    struct fixture *f = *state;

    insert_items_of(f, "numpy-2.4.6", "NumPy", false);
    store_run(f, run_of(1, CONTROL));
    store_run(f, challenge(2, CONTROL));
    store_run(f, run_of(3, STEADY));
    assert_false(fixture_cell(f, "ordered").evidence.checks.has_reference);
    store_run(f, run_of(4, STEADY));
    assert_cell(f, "ordered", VERDICT_INCONCLUSIVE, "another seed was not tried yet");
    store_run(f, challenge(5, STEADY));
    assert_cell(f, "ordered", VERDICT_REPRODUCIBLE, "another seed gave another digest");
    check_all(f);
}

static void test_a_framework_that_answers_without_its_inputs_is_found(void **state)
{
    struct fixture *f = *state;
    struct fixture_run r = challenge(5, STEADY);

    insert_items_of(f, "numpy-2.4.6", "NumPy", false);
    store_run(f, run_of(1, CONTROL));
    store_run(f, challenge(2, CONTROL));
    store_run(f, run_of(3, STEADY));
    store_run(f, run_of(4, STEADY));
    r.input = 0;
    store_run(f, r);
    assert_challenges(f, 0, 0, 1, 0);
    assert_cell(f, "ordered", VERDICT_INCONCLUSIVE, "answers without its inputs");
    check_all(f);
}

/* It prints a constant: no seed changes that. */
static void test_a_constant_is_found(void **state)
{
    struct fixture *f = *state;

    make_steady(f);
    for (int n = 5; n < 5 + CHALLENGES_REPEATED; n++) {
        struct fixture_run r = challenge(n, STEADY);

        assert_cell(f, "ordered", VERDICT_INCONCLUSIVE, "not challenged");
        r.digest = 0;
        store_run(f, r);
    }
    assert_cell(
        f, "ordered", VERDICT_INCONCLUSIVE,
        "the program answers without its inputs: with another seed, run "
        "01R00000000000000000000005 gave the same digest, as did 3 of 3 such runs");
    assert_challenges(f, 0, 3, 0, 0);
    check_all(f);
}

/* Its result depends on the seed, and not on what it says that it computes from. */
static void test_inputs_that_stay_are_found_at_once(void **state)
{
    struct fixture *f = *state;
    struct fixture_run r = challenge(5, STEADY);

    make_steady(f);
    r.input = 0;
    store_run(f, r);
    assert_cell(f, "ordered", VERDICT_INCONCLUSIVE,
                "without its inputs: with another seed, run 01R00000000000000000000005 "
                "computed from the same ones");
    r = challenge(6, STEADY);
    fixture_write(f, fixture_begin, &r);
    assert_false(r.is_challenge); /* nothing could make up for it */
    check_all(f);
}

static void test_who_answers_the_first_time_only_is_found(void **state)
{
    struct fixture *f = *state;

    make_steady(f);
    store_run(f, challenge(5, STEADY));
    for (int n = 6; n < 10; n++) {
        struct fixture_run r = challenge(n, STEADY);

        assert_cell(f, "ordered", VERDICT_REPRODUCIBLE, "another digest");
        r.digest = 0;
        store_run(f, r);
    }
    assert_cell(f, "ordered", VERDICT_INCONCLUSIVE, "4 of 5 such runs");
    check_all(f);
}

/* Of results that are small numbers, some are the same. */
static void test_one_digest_may_be_the_same_by_chance(void **state)
{
    struct fixture *f = *state;
    struct fixture_run r = challenge(5, STEADY);

    make_steady(f);
    r.digest = 0;
    store_run(f, r);
    assert_cell(f, "ordered", VERDICT_INCONCLUSIVE, "may be a coincidence");
    store_run(f, challenge(6, STEADY));
    assert_cell(f, "ordered", VERDICT_REPRODUCIBLE, "another digest");
    assert_challenges(f, 1, 1, 0, 0);
    check_all(f);
}

static void test_what_crashes_on_other_seeds_shows_nothing(void **state)
{
    struct fixture *f = *state;
    struct fixture_run r = challenge(5, STEADY);
    struct fixture_run lost = challenge(6, STEADY);

    make_steady(f);
    r.outcome = OUTCOME_CRASHED;
    r.environment = 0; /* before it said anything */
    store_run(f, r);
    lost.outcome = OUTCOME_LOST;
    store_run(f, lost);
    assert_cell(f, "ordered", VERDICT_INCONCLUSIVE, "another seed has no result so far");
    assert_challenges(f, 0, 0, 0, 1);
    check_all(f);
}

static void test_a_control_has_to_pass_as_well(void **state)
{
    struct fixture *f = *state;
    struct fixture_run r = challenge(4, CONTROL);

    insert_items(f, false);
    store_run(f, run_of(1, STEADY));
    store_run(f, run_of(2, STEADY));
    store_run(f, challenge(3, STEADY));
    store_run(f, run_of(5, CONTROL));
    assert_cell(f, "ordered", VERDICT_INCONCLUSIVE,
                "the control varied, but it was not challenged");
    r.input = 0;
    store_run(f, r);
    assert_cell(f, "ordered", VERDICT_INCONCLUSIVE,
                "the control varied, but it answers without its inputs: with another "
                "seed, run 01R00000000000000000000004 computed");
    assert_cell(f, "unordered", VERDICT_VARIES, "3 digests");
    check_all(f);
}

/* Its one digest turns up in the control only later. */
static void test_a_challenge_is_compared_with_later_runs_too(void **state)
{
    struct fixture *f = *state;
    struct fixture_run r;

    make_steady(f);
    store_run(f, challenge(5, STEADY));
    assert_cell(f, "ordered", VERDICT_REPRODUCIBLE, "");
    for (int n = 6; n < 9; n++) { /* the control's */
        r = challenge(n, CONTROL);
        r.digest = 30;
        store_run(f, r);
    }
    assert_cell(f, "ordered", VERDICT_REPRODUCIBLE, "");
    r = run_of(9, CONTROL);
    r.digest = 30;
    store_run(f, r);
    assert_int_equal(fixture_cell(f, "unordered").evidence.challenges.repeated, 3);
    assert_cell(f, "ordered", VERDICT_REPRODUCIBLE, ""); /* 3 and 1 */
    r = challenge(10, CONTROL);
    r.digest = 31;
    store_run(f, r);
    assert_cell(f, "ordered", VERDICT_INCONCLUSIVE,
                "the control varied, but it answers without its inputs");
    check_all(f);
}

/* A person says which inputs are right: then those of the challenge are the case's. */
static enum err_code decide(struct tx *tx, void *arg, struct err *err)
{
    int64_t siblings = 0;

    (void)arg;
    return tx_fetch_int(tx, &siblings, err,
                        "SELECT siblings FROM case_key WHERE seed = 1") == ERR_OK
               ? case_inputs_decide(tx, siblings, "00000000000000000000000000000109",
                                    "they are", 99000, err)
               : err->code;
}

static void test_unchanged_means_the_inputs_of_the_case(void **state)
{
    struct fixture *f = *state;
    struct fixture_run r = run_of(5, STEADY);

    make_steady(f);
    r.input = 9; /* refused: the others are more */
    store_run(f, r);
    r = challenge(6, STEADY);
    r.input = 9;
    store_run(f, r);
    assert_challenges(f, 1, 0, 0, 0);
    fixture_write(f, decide, NULL);
    assert_challenges(f, 0, 0, 1, 0);
    check_all(f);
}

static void test_what_has_no_seeded_inputs_is_not_challenged(void **state)
{
    struct fixture *f = *state;
    struct fixture_run r = challenge(5, STEADY);

    insert_items(f, true);
    store_run(f, run_of(1, CONTROL));
    store_run(f, run_of(3, STEADY));
    store_run(f, run_of(4, STEADY));
    fixture_write(f, fixture_begin, &r);
    assert_false(r.is_challenge);
    assert_cell(f, "ordered", VERDICT_INCONCLUSIVE,
                "its command declares that it has no seeded inputs");
}

/* What crashes then would count nowhere. */
static void test_the_environment_has_to_be_known(void **state)
{
    struct fixture *f = *state;
    struct fixture_run r = challenge(1, STEADY);

    insert_items(f, false);
    fixture_write(f, fixture_begin, &r);
    assert_false(r.is_challenge);
    store_run(f, run_of(2, CONTROL));
    r = challenge(3, STEADY_ELSEWHERE);
    fixture_write(f, fixture_begin, &r);
    assert_false(r.is_challenge);
    r = challenge(4, STEADY); /* its cell does not exist yet */
    r.outcome = OUTCOME_CRASHED;
    r.environment = 0;
    store_run(f, r);
    assert_challenges(f, 0, 0, 0, 1);
    assert_cell(f, "ordered", VERDICT_UNMEASURED, "no run has completed");
}

static void test_only_commands_are_challenged(void **state)
{
    struct fixture *f = *state;
    struct job_item item = fixture_item("ordered", "cpu:a", 5);
    struct fixture_job j = fixture_job(1, &item, 1);
    struct fixture_run r = challenge(1, 0);

    fixture_write(f, fixture_insert_job, &j);
    fixture_write(f, fixture_begin, &r);
    assert_false(r.is_challenge);
}

/* Once it passed, or failed often, one in a few runs is challenged. */
static void test_challenges_become_rare(void **state)
{
    struct fixture *f = *state;
    struct challenges known;
    int made = 0;

    make_steady(f);
    for (int n = 5; n < 5 + CHALLENGES_FAILED; n++) {
        struct fixture_run r = challenge(n, STEADY);

        r.outcome = OUTCOME_TIMEOUT;
        store_run(f, r);
    }
    assert_challenges(f, 0, 0, 0, CHALLENGES_FAILED);
    known = fixture_cell(f, "ordered").evidence.challenges;
    for (uint32_t draw = 0; draw < 4 * CHALLENGES_RARE * (CHALLENGES_FAILED + 1);
         draw++) {
        struct challenge_offer offer = { .seed = 1, .needed = true, .draw = draw };

        made += challenge_is_due(&offer, &known);
    }
    assert_int_equal(made, 4);
}

/* Runs and challenges, answered in each way, arriving in many orders. */
static struct fixture_run some_run(int n)
{
    static const int items[] = { STEADY, CONTROL, STEADY_ELSEWHERE };
    struct fixture_run r = n % 2 ? challenge(n, items[n % 3]) : run_of(n, items[n % 3]);

    if (n % 2) {
        r.input = n == 9 ? 0 : r.input;
        r.digest = n % 5 == 0 ? 0 : r.digest;
        r.outcome = n == 11 ? OUTCOME_INVALID : OUTCOME_COMPLETED;
    } else if (r.item == CONTROL) {
        r.digest = n;
    }
    return r;
}

enum { RUNS = 24, ORDERS = 12 };

static void store_in_some_order(struct fixture *f, int *places)
{
    struct fixture_run runs[RUNS];

    insert_items(f, false);
    store_run(f, run_of(RUNS + 1, CONTROL)); /* both devices are known */
    store_run(f, run_of(RUNS + 2, STEADY_ELSEWHERE));
    for (int i = 0; i < RUNS; i++) { /* all are asked before the first ends */
        runs[i] = some_run(i + 1);
        places[i] = i;
        fixture_write(f, fixture_begin, &runs[i]);
        assert_int_equal(runs[i].is_challenge, runs[i].seed != 0);
    }
    for (int i = RUNS - 1; i > 0; i--) {
        int j = (int)(random() % (i + 1));
        int place = places[i];

        places[i] = places[j];
        places[j] = place;
    }
    for (int i = 0; i < RUNS; i++) {
        fixture_write(f, fixture_finish, &runs[places[i]]);
    }
}

static void test_any_order_of_arrival_gives_the_same(void **state)
{
    struct cell first[2], cell[2];
    int places[RUNS];

    srandom(7);
    for (int i = 0; i < ORDERS; i++) {
        struct fixture *f = *state;

        store_in_some_order(f, places);
        check_all(f);
        cell[0] = fixture_cell(f, "ordered");
        cell[1] = fixture_cell(f, "unordered");
        for (int c = 0; c < 2; c++) {
            first[c] = i ? first[c] : cell[c];
            assert_int_equal(cell[c].verdict, first[c].verdict);
            assert_string_equal(cell[c].reason, first[c].reason);
            assert_int_equal(cell[c].evidence.challenges.passed,
                             first[c].evidence.challenges.passed);
            assert_int_equal(cell[c].evidence.challenges.repeated,
                             first[c].evidence.challenges.repeated);
            assert_string_equal(cell[c].evidence.challenges.run,
                                first[c].evidence.challenges.run);
        }
        fixture_teardown(state);
        fixture_setup(state);
    }
    assert_int_equal(first[0].verdict, VERDICT_INCONCLUSIVE);
    assert_int_equal(first[0].evidence.challenges.unchanged, 1);
    assert_true(first[0].evidence.challenges.passed > 1);
    assert_int_equal(first[0].evidence.challenges.failed, 1);
}

static enum err_code spoil(struct tx *tx, void *arg, struct err *err)
{
    return tx_run(tx, err, (const char *)arg);
}

/* The second opinion counts by itself. */
static void test_fsck_finds_what_is_not_so(void **state)
{
    static char lies[][96] = {
        "UPDATE cell SET challenges_passed = 2 WHERE id = 3",
        "UPDATE cell SET challenges_repeated = 1 WHERE id = 3",
        "UPDATE cell SET challenges_unchanged = 1 WHERE id = 3",
        "UPDATE cell SET challenges_failed = 1 WHERE id = 3",
        "UPDATE cell SET challenge_run = '01R' WHERE id = 3",
        "UPDATE run SET challenged = NULL WHERE challenged = 3",
        "UPDATE run SET input_digest = printf('%032x', 256) WHERE challenged = 3",
    };

    for (int i = 0; i < COUNT_OF(lies); i++) {
        struct fixture *f = *state;
        int64_t counts[2];

        make_steady(f);
        store_run(f, challenge(5, STEADY));
        assert_int_equal(fixture_cell(f, "ordered").id, 3);
        fixture_write(f, spoil, lies[i]);
        fixture_read(f, fixture_recompute, counts);
        assert_int_equal(counts[1], 1);
        fixture_teardown(state);
        fixture_setup(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_a_command_is_green_once_it_was_challenged),
        STORE_TEST(test_a_framework_is_green_once_it_was_challenged),
        STORE_TEST(test_a_framework_that_answers_without_its_inputs_is_found),
        STORE_TEST(test_a_constant_is_found),
        STORE_TEST(test_inputs_that_stay_are_found_at_once),
        STORE_TEST(test_who_answers_the_first_time_only_is_found),
        STORE_TEST(test_one_digest_may_be_the_same_by_chance),
        STORE_TEST(test_what_crashes_on_other_seeds_shows_nothing),
        STORE_TEST(test_a_control_has_to_pass_as_well),
        STORE_TEST(test_a_challenge_is_compared_with_later_runs_too),
        STORE_TEST(test_unchanged_means_the_inputs_of_the_case),
        STORE_TEST(test_what_has_no_seeded_inputs_is_not_challenged),
        STORE_TEST(test_the_environment_has_to_be_known),
        STORE_TEST(test_only_commands_are_challenged),
        STORE_TEST(test_challenges_become_rare),
        STORE_TEST(test_any_order_of_arrival_gives_the_same),
        STORE_TEST(test_fsck_finds_what_is_not_so),
    };

    return cmocka_run_group_tests_name("challenges", tests, NULL, NULL);
}
