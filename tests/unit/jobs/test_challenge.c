/* When a command is challenged, and what its answers show (daemon/jobs/challenge.h). */
#include "daemon/jobs/challenge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/jobs/scheduler.h"

static bool due(bool needed, uint32_t draw, struct challenges known)
{
    struct challenge_offer offer = { .seed = 5, .needed = needed, .draw = draw };

    return challenge_is_due(&offer, &known);
}

static void test_what_is_needed_is_due_until_one_tells(void **state)
{
    struct challenge_offer none = { .seed = 0, .needed = true };

    (void)state;
    assert_true(due(true, 1, (struct challenges){ .passed = 0 }));
    assert_false(due(false, 0, (struct challenges){ .passed = 0 }));
    assert_false(challenge_is_due(&none, &(struct challenges){ .passed = 0 }));
    assert_true(due(true, 1, (struct challenges){ .repeated = 2, .failed = 2 }));
    assert_true(due(true, 1, (struct challenges){ .repeated = 11 }));
    assert_false(due(true, 1, (struct challenges){ .repeated = 12 }));
    assert_false(due(true, 1, (struct challenges){ .failed = 3 }));
    assert_false(due(true, 1, (struct challenges){ .passed = 1 }));
}

/* Of all draws, how many of a thousand times CHALLENGES_RARE make a challenge. */
static int count(struct challenges known)
{
    int n = 0;

    for (uint32_t draw = 0; draw < 1000 * CHALLENGES_RARE; draw++) {
        n += due(draw % 2, draw, known);
    }
    return n;
}

static void test_then_they_are_rare_and_never_end(void **state)
{
    (void)state;
    assert_int_equal(count((struct challenges){ .passed = 1 }), 500);
    assert_int_equal(count((struct challenges){ .passed = 1, .repeated = 2 }), 250);
    assert_int_equal(count((struct challenges){ .repeated = 12, .failed = 7 }), 50);
    assert_int_equal(count((struct challenges){ .passed = 99 }), 10);
    assert_int_equal(count((struct challenges){ .passed = 99, .unchanged = 1 }), 0);
}

static void test_what_the_answers_show(void **state)
{
    static const struct {
        struct challenges c;
        bool passed, ignored;
    } cases[] = {
        { { .passed = 0 }, false, false },
        { { .passed = 1 }, true, false },
        { { .failed = 9 }, false, false },
        { { .repeated = 2 }, false, false },
        { { .repeated = 3 }, false, true },
        { { .passed = 1, .repeated = 3 }, true, false },
        { { .passed = 1, .repeated = 4 }, false, true },
        { { .passed = 2, .repeated = 6 }, true, false },
        { { .passed = 2, .repeated = 7 }, false, true },
        { { .unchanged = 1 }, false, true },
        { { .passed = 1000, .unchanged = 1 }, false, true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(challenges_passed(&cases[i].c), cases[i].passed);
        assert_int_equal(challenges_ignored(&cases[i].c), cases[i].ignored);
    }
}

/* A program that answers the first challenge and no other, in a job of many runs. */
static int64_t runs_until_ignored(uint64_t seed)
{
    struct job_item item = { .key = { .seed = 1 }, .runs_wanted = 1000000 };
    struct job job = { .id = "J", .items = &item, .item_count = 1 };
    struct challenges known = { .passed = 0 };
    struct scheduler *s = scheduler_new();
    struct scheduler_pick pick;
    int64_t runs = 0;

    scheduler_seed(s, seed);
    scheduler_add(s, &job);
    known.passed = 1;
    while (!challenges_ignored(&known)) {
        assert_true(scheduler_next(s, "", &pick));
        if (challenge_is_due(&pick.challenge, &known)) {
            known.repeated++;
            scheduler_challenged(s, "J", 0);
        } else {
            runs++;
            scheduler_finished(s, "J", 0, OUTCOME_COMPLETED, 1, false);
        }
    }
    scheduler_free(s);
    return runs;
}

/* Four more challenges tell: on average after 32 x (2 + 3 + 4 + 5) runs. */
static void test_who_answers_once_is_found_in_the_end(void **state)
{
    enum { SEEDS = 50 };
    int64_t sum = 0;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        sum += runs_until_ignored(seed);
    }
    assert_in_range(sum / SEEDS, 32 * 14 / 2, 32 * 14 * 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_needed_is_due_until_one_tells),
        cmocka_unit_test(test_then_they_are_rare_and_never_end),
        cmocka_unit_test(test_what_the_answers_show),
        cmocka_unit_test(test_who_answers_once_is_found_in_the_end),
    };

    return cmocka_run_group_tests_name("challenge", tests, NULL, NULL);
}
