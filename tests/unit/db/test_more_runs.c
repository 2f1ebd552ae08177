/* More runs than a job asked for: it goes on until it can be told which devices are
 * wrong. */
#include "tests/unit/db/fleet_fixture.h"

/* A job of five runs on each device goes on with the suspect and its controls, until it
 * can be told, and ends then. */
static void test_a_job_goes_on_until_it_can_be_told(void **state)
{
    struct fixture *f = *state;
    struct job_item items[DEVICES];
    struct fixture_job j = fixture_job(1, items, DEVICES);
    int left[DEVICES], more = 0, n = 1;
    bool finished = false;

    fixture_write(f, insert_fleet, NULL);
    for (int i = 0; i < DEVICES; i++) {
        char device[16];

        snprintf(device, sizeof device, "GPU-%d", i);
        items[i] = fixture_item("ordered", device, 5);
        left[i] = 5;
    }
    fixture_write(f, fixture_insert_job, &j);
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < DEVICES; i++) {
            struct fixture_run r = { .n = n,
                                     .job = 1,
                                     .item = i,
                                     .outcome = OUTCOME_COMPLETED,
                                     .environment = 1,
                                     .digest = i == WRONG ? 9 : 5 };

            if (left[i] == 0) {
                continue;
            }
            assert_false(finished);
            n++;
            left[i]--;
            again = true;
            fixture_write(f, fixture_whole_run, &r);
            finished = r.effect.job_finished;
            for (int m = 0; m < r.effect.more_count; m++) {
                more += 3;
                left[r.effect.more[m].item] += 3;
            }
        }
    }
    assert_true(finished);
    assert_true(more > 0 && more <= 3 * DEVICES);
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_DEVICES_DISAGREE);
    assert_int_equal(n - 1, 5 * DEVICES + more);
    fixture_check_cells(f);
}

/* Devices of another environment, which the job measures later, are waited for by nobody.
 */
static void test_a_job_of_two_environments_asks_in_each(void **state)
{
    struct fixture *f = *state;
    struct job_item items[DEVICES];
    struct fixture_job j = fixture_job(1, items, DEVICES);
    int left[DEVICES], n = 1;

    fixture_write(f, insert_fleet, NULL);
    for (int i = 0; i < DEVICES; i++) {
        char device[16];

        snprintf(device, sizeof device, "GPU-%d", i);
        items[i] = fixture_item("ordered", device, 5);
        left[i] = 5;
    }
    fixture_write(f, fixture_insert_job, &j);
    for (int environment = 1; environment <= 2; environment++) {
        int first = environment == 1 ? 0 : DEVICES / 2;

        for (bool again = true; again;) {
            again = false;
            for (int i = first; i < first + DEVICES / 2; i++) {
                struct fixture_run r = { .n = n,
                                         .job = 1,
                                         .item = i,
                                         .outcome = OUTCOME_COMPLETED,
                                         .environment = environment,
                                         .digest = i == WRONG ? 9 : 5 };

                if (left[i] == 0) {
                    continue;
                }
                n++;
                left[i]--;
                again = true;
                fixture_write(f, fixture_whole_run, &r);
                for (int m = 0; m < r.effect.more_count; m++) {
                    assert_int_equal(environment, 1);
                    left[r.effect.more[m].item] += 3;
                }
            }
        }
        assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_DEVICES_DISAGREE);
    }
    assert_true(n - 1 > 5 * DEVICES);
    fixture_check_cells(f);
}

/* What never can be told ends, too. */
static void test_a_job_does_not_go_on_for_ever(void **state)
{
    struct fixture *f = *state;
    struct job_item items[2] = { fixture_item("ordered", "GPU-1", 2),
                                 fixture_item("ordered", "GPU-2", 2) };
    struct fixture_job j = fixture_job(1, items, 2);
    int left[2] = { 2, 2 }, n = 1;
    bool finished = false;

    fixture_write(f, insert_fleet, NULL);
    fixture_write(f, fixture_insert_job, &j);
    while (left[0] + left[1] > 0) {
        int item = left[1] > left[0];
        struct fixture_run r = { .n = n,
                                 .job = 1,
                                 .item = item,
                                 .outcome = OUTCOME_COMPLETED,
                                 .environment = 1,
                                 .digest = n == 1 ? 9 : 5 };

        n++;
        left[item]--;
        fixture_write(f, fixture_whole_run, &r);
        finished = r.effect.job_finished;
        for (int m = 0; m < r.effect.more_count; m++) {
            left[r.effect.more[m].item] += 3;
        }
    }
    assert_true(finished);
    assert_int_equal(n - 1, 2 * (2 + 21));
    assert_int_equal(fixture_cell(f, "ordered").verdict, VERDICT_INCONCLUSIVE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_a_job_goes_on_until_it_can_be_told),
        STORE_TEST(test_a_job_of_two_environments_asks_in_each),
        STORE_TEST(test_a_job_does_not_go_on_for_ever),
    };

    return cmocka_run_group_tests_name("more runs", tests, NULL, NULL);
}
