/* Which runs of an item may be challenges, and how many. */
#include "tests/unit/jobs/scheduler_fixture.h"

/* Takes the challenges that are needed: those of a cell that never passes if FAILS, else
 * the first.  Returns before which run of the item it came (from 0), or -1. */
static int serve_challenged(struct scheduler *s, int *ret_challenges, bool fails)
{
    struct scheduler_pick pick;
    char id[ID_SIZE];
    int place = -1;

    *ret_challenges = 0;
    for (int run = 0; scheduler_next(s, "d", &pick);) {
        copy_text(id, sizeof id, pick.job);
        assert_true(pick.challenge.seed > 0 && pick.challenge.seed <= INT32_MAX);
        assert_int_not_equal(pick.challenge.seed, pick.item->key.seed);
        if (pick.challenge.needed && (fails || *ret_challenges == 0)) {
            place = place < 0 ? run : place;
            ++*ret_challenges;
            scheduler_challenged(s, id, pick.item->seq);
            continue;
        }
        scheduler_finished(s, id, pick.item->seq, OUTCOME_COMPLETED, 1, false);
        run++;
    }
    return place;
}

enum { SEEDS = 400, ITEM_RUNS = 4 };

/* Each item has one, before the first run as often as before the last. */
static void test_a_challenge_comes_at_any_place(void **state)
{
    int places[ITEM_RUNS] = { 0 };

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct job_item items[] = { item(0, "a", "u", "d", ITEM_RUNS) };
        struct job job = make_job("J", JOB_INTERACTIVE, items, 1);
        struct scheduler *s = scheduler_new();
        int challenges;
        int place;

        scheduler_seed(s, seed);
        scheduler_add(s, &job);
        place = serve_challenged(s, &challenges, false);
        assert_in_range(place, 0, ITEM_RUNS - 1);
        places[place]++;
        scheduler_free(s);
    }
    for (int i = 0; i < ITEM_RUNS; i++) {
        assert_in_range(places[i], SEEDS / ITEM_RUNS / 2, 2 * SEEDS / ITEM_RUNS);
    }
}

/* An item has a few at most, also if all fail, and all of its runs. */
static void test_challenges_are_no_answers(void **state)
{
    struct job_item items[] = { item(0, "a", "u", "d", 2), item(1, "a", "o", "d", 1) };
    struct job job = make_job("J", JOB_INTERACTIVE, items, 2);

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct scheduler *s = scheduler_new();
        int challenges;

        scheduler_seed(s, seed);
        scheduler_add(s, &job);
        assert_int_equal(progress_of(s, "J").runs_total, 3);
        assert_int_not_equal(serve_challenged(s, &challenges, true), -1);
        assert_in_range(challenges, 4, 2 * CHALLENGES_OF_ITEM);
        assert_int_equal(scheduler_open_jobs(s), 0);
        scheduler_free(s);
    }
}

/* It ends after JOBS_STOP_RUNS runs if it varies: until then it had its challenge. */
static void test_what_stops_early_is_challenged_before(void **state)
{
    struct job_item items[] = { item(0, "a", "u", "d", 100) };
    struct job job = make_job("J", JOB_INTERACTIVE, items, 1);
    struct scheduler_pick pick;

    (void)state;
    job.stop_when_varies = true;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct scheduler *s = scheduler_new();
        bool needed = false;

        scheduler_seed(s, seed);
        scheduler_add(s, &job);
        for (int run = 0; run < JOBS_STOP_RUNS; run++) {
            assert_true(scheduler_next(s, "d", &pick));
            needed = needed || pick.challenge.needed;
            scheduler_finished(s, "J", 0, OUTCOME_COMPLETED, 1, false);
        }
        assert_true(needed);
        scheduler_free(s);
    }
}

static void test_a_localisation_has_no_challenges(void **state)
{
    struct job_item items[] = { item(0, "a", "u", "d", 1) };
    struct job job = make_job("J", JOB_INTERACTIVE, items, 1);
    struct scheduler *s = scheduler_new();
    struct scheduler_pick pick;

    (void)state;
    job.localise_runs = 2;
    scheduler_add(s, &job);
    scheduler_release(s, "J", 0, NULL);
    assert_true(scheduler_next(s, "d", &pick));
    assert_int_equal(pick.challenge.seed, 0);
    assert_false(pick.challenge.needed);
    scheduler_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_challenge_comes_at_any_place),
        cmocka_unit_test(test_challenges_are_no_answers),
        cmocka_unit_test(test_what_stops_early_is_challenged_before),
        cmocka_unit_test(test_a_localisation_has_no_challenges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
