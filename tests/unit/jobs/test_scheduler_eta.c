/* How long a job still takes, as far as is known. */
#include "tests/unit/jobs/scheduler_fixture.h"

static void test_eta_counts_higher_priority_work(void **state)
{
    struct job_item a[] = { item(0, "a", "x", "d", 11) };
    struct job_item b[] = { item(0, "a", "x", "d", 5) };
    struct job survey = make_job("S", JOB_BACKGROUND, a, 1);
    struct job person = make_job("P", JOB_INTERACTIVE, b, 1);
    struct scheduler *s = scheduler_new();
    struct scheduler_progress progress;

    (void)state;
    scheduler_add(s, &survey);
    assert_true(scheduler_progress(s, "S", &progress));
    assert_int_equal(progress.eta_ms, -1);
    serve(s, "d");
    assert_true(scheduler_progress(s, "S", &progress));
    assert_int_equal(progress.eta_ms, 100);
    scheduler_add(s, &person);
    assert_true(scheduler_progress(s, "S", &progress));
    assert_int_equal(progress.eta_ms, 150);
    scheduler_free(s);
}

/* Jobs of equal priority share the device: what they have to do is not in the way of one
 * that is served in turn. */
static void test_eta_leaves_out_equals(void **state)
{
    struct job_item a[] = { item(0, "a", "x", "d", 11) };
    struct job_item b[] = { item(0, "a", "x", "d", 5) };
    struct job one = make_job("A", JOB_INTERACTIVE, a, 1);
    struct job equal = make_job("B", JOB_INTERACTIVE, b, 1);
    struct scheduler *s = scheduler_new();
    struct scheduler_progress progress;

    (void)state;
    scheduler_add(s, &one);
    serve(s, "d");
    scheduler_add(s, &equal);
    assert_true(scheduler_progress(s, "A", &progress));
    assert_int_equal(progress.eta_ms, 100);
    scheduler_free(s);
}

/* An item's own mean counts, once it has one; until then that of the job. */
static void test_eta_counts_what_each_item_takes(void **state)
{
    struct job_item items[] = { item(0, "a", "u", "d", 4), item(1, "a", "o", "d", 3),
                                item(2, "b", "u", "d", 1) };
    struct job job = make_job("J", JOB_INTERACTIVE, items, 3);
    struct scheduler *s = scheduler_new();

    (void)state;
    scheduler_add(s, &job);
    serve_as(s, "d", OUTCOME_COMPLETED, 100);
    assert_int_equal(progress_of(s, "J").eta_ms, 7 * 100);
    serve_as(s, "d", OUTCOME_COMPLETED, 20);
    assert_int_equal(progress_of(s, "J").eta_ms, 3 * 100 + 2 * 20 + 60);
    serve_as(s, "d", OUTCOME_COMPLETED, 200);
    serve_as(s, "d", OUTCOME_COMPLETED, 20);
    assert_int_equal(progress_of(s, "J").eta_ms, 2 * 150 + 20 + 85);
    scheduler_free(s);
}

/* Devices work at the same time: the slowest decides, wherever it stands. */
static void test_eta_is_that_of_the_slowest_device(void **state)
{
    (void)state;
    for (int slow = 0; slow < 3; slow++) {
        struct job_item items[] = { item(0, "a", "u", "d", slow == 0 ? 9 : 3),
                                    item(1, "a", "u", "e", slow == 1 ? 9 : 3),
                                    item(2, "a", "u", "f", slow == 2 ? 9 : 3),
                                    item(3, "a", "o", "d", 1) };
        struct job job = make_job("J", JOB_INTERACTIVE, items, 4);
        struct scheduler *s = scheduler_new();

        scheduler_add(s, &job);
        for (int i = 0; i < 3; i++) {
            assert_string_equal(serve(s, items[i].device), "J/u");
        }
        assert_int_equal(progress_of(s, "J").eta_ms, 80 + (slow == 0) * 10);
        assert_string_equal(serve(s, "d"), "J/o");
        assert_int_equal(progress_of(s, "J").eta_ms, 80);
        scheduler_free(s);
    }
}

/* What others have to do on a device matters only where the job has something left. */
static void test_eta_leaves_out_devices_that_are_done(void **state)
{
    struct job_item a[] = { item(0, "a", "x", "d", 4), item(1, "a", "x", "e", 1),
                            item(2, "b", "x", "d", 1) };
    struct job_item b[] = { item(0, "a", "y", "e", 100) };
    struct job one = make_job("A", JOB_BACKGROUND, a, 3);
    struct job other = make_job("B", JOB_INTERACTIVE, b, 1);
    struct scheduler *s = scheduler_new();

    (void)state;
    scheduler_add(s, &one);
    assert_string_equal(serve(s, "e"), "A/x");
    assert_string_equal(serve(s, "d"), "A/x");
    scheduler_add(s, &other);
    assert_int_equal(progress_of(s, "A").eta_ms, 40);
    scheduler_free(s);
}

/* Runs may take no measurable time; that is known, and no missing mean. */
static void test_eta_of_what_takes_no_time(void **state)
{
    struct job_item a[] = { item(0, "a", "x", "d", 9) };
    struct job_item b[] = { item(0, "a", "x", "d", 9), item(1, "b", "y", "d", 9) };
    struct job fast = make_job("F", JOB_INTERACTIVE, b, 2);
    struct job slow = make_job("S", JOB_BACKGROUND, a, 1);
    struct scheduler *s = scheduler_new();

    (void)state;
    scheduler_add(s, &slow);
    assert_string_equal(serve_as(s, "d", OUTCOME_COMPLETED, 50), "S/x");
    scheduler_add(s, &fast);
    assert_string_equal(serve_as(s, "d", OUTCOME_COMPLETED, 0), "F/x");
    assert_int_equal(progress_of(s, "F").eta_ms, 0);
    assert_int_equal(progress_of(s, "S").eta_ms, 8 * 50);
    scheduler_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eta_counts_higher_priority_work),
        cmocka_unit_test(test_eta_leaves_out_equals),
        cmocka_unit_test(test_eta_counts_what_each_item_takes),
        cmocka_unit_test(test_eta_is_that_of_the_slowest_device),
        cmocka_unit_test(test_eta_leaves_out_devices_that_are_done),
        cmocka_unit_test(test_eta_of_what_takes_no_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
