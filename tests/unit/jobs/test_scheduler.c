/* The scheduler as a pure state machine: order, fairness, bounds. */
#include "tests/unit/jobs/options_fixture.h"
#include "tests/unit/jobs/scheduler_fixture.h"

static void test_an_item_may_have_time_of_its_own(void **state)
{
    struct job_item items[] = { item(0, "a", "u", "d", 1), item(1, "b", "u", "d", 1) };
    struct job job = make_job("J", JOB_INTERACTIVE, items, 2);
    struct scheduler *s = scheduler_new();
    struct scheduler_pick pick;

    (void)state;
    items[1].timeout_ms = 90000;
    scheduler_add(s, &job);
    assert_true(scheduler_next(s, "d", &pick));
    assert_int_equal(pick.timeout_ms, 1000);
    assert_int_equal(pick.iterations, 7);
    assert_true(scheduler_next(s, "d", &pick));
    assert_int_equal(pick.timeout_ms, 90000);
    scheduler_free(s);
}

static void test_variants_alternate_within_a_group(void **state)
{
    struct job_item items[] = { item(0, "a", "u", "d", 2), item(1, "a", "o", "d", 2),
                                item(2, "b", "u", "d", 1) };
    struct job job = make_job("J", JOB_INTERACTIVE, items, 3);
    struct scheduler *s = scheduler_new();

    (void)state;
    scheduler_add(s, &job);
    assert_string_equal(serve(s, "d"), "J/u");
    assert_string_equal(serve(s, "d"), "J/o");
    assert_string_equal(serve(s, "d"), "J/u");
    assert_string_equal(serve(s, "d"), "J/o");
    assert_string_equal(serve(s, "d"), "J/u"); /* group b */
    assert_string_equal(serve(s, "d"), "");
    assert_int_equal(scheduler_open_jobs(s), 0);
    scheduler_free(s);
}

/* Where imports are shared, no case has its next run before every other had one. */
static void test_cases_take_turns_where_imports_are_shared(void **state)
{
    struct job_item items[] = { item(0, "a", "u", "d", 2), item(1, "a", "o", "d", 2),
                                item(2, "b", "p", "d", 2), item(3, "c", "q", "d", 2) };
    struct job job = make_job("J", JOB_INTERACTIVE, items, 4);
    struct scheduler *s = scheduler_new();

    (void)state;
    for (int i = 0; i < 3; i++) {
        items[i].options.circumstances.shared_import = 1;
    }
    scheduler_add(s, &job);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(serve(s, "d"), "J/u");
        assert_string_equal(serve(s, "d"), "J/o");
        assert_string_equal(serve(s, "d"), "J/p");
    }
    assert_string_equal(serve(s, "d"), "J/q");
    assert_string_equal(serve(s, "d"), "J/q");
    assert_string_equal(serve(s, "d"), "");
    scheduler_free(s);
}

static void test_one_run_in_flight_an_item(void **state)
{
    struct job_item items[] = { item(0, "a", "u", "d", 5) };
    struct job job = make_job("J", JOB_INTERACTIVE, items, 1);
    struct scheduler *s = scheduler_new();
    struct scheduler_pick pick;

    (void)state;
    scheduler_add(s, &job);
    assert_true(scheduler_next(s, "d", &pick));
    assert_false(scheduler_next(s, "d", &pick));
    assert_false(scheduler_next(s, "other", &pick));
    scheduler_free(s);
}

/* Runs that were lost are attempts, too: what fails to answer holds up nothing else. */
static void test_the_variant_with_the_fewest_attempts_is_next(void **state)
{
    struct job_item items[] = { item(0, "a", "u", "d", 2), item(1, "a", "o", "d", 2) };
    struct job job = make_job("J", JOB_INTERACTIVE, items, 2);
    struct scheduler *s = scheduler_new();

    (void)state;
    items[1].runs_unanswered = 1;
    scheduler_add(s, &job);
    assert_string_equal(serve_as(s, "d", OUTCOME_LOST, 1), "J/u");
    assert_string_equal(serve_as(s, "d", OUTCOME_LOST, 1), "J/u");
    assert_string_equal(serve(s, "d"), "J/o");
    assert_string_equal(serve(s, "d"), "J/u");
    assert_string_equal(serve(s, "d"), "J/o");
    assert_string_equal(serve(s, "d"), "J/u");
    assert_int_equal(scheduler_open_jobs(s), 0);
    scheduler_free(s);
}

/* A job that has nothing more to start on a device leaves it to others. */
static void test_a_busy_job_holds_no_device(void **state)
{
    struct job_item a[] = { item(0, "a", "x", "d", 5) };
    struct job_item b[] = { item(0, "b", "y", "d", 5) };
    struct job person = make_job("P", JOB_INTERACTIVE, a, 1);
    struct job survey = make_job("S", JOB_BACKGROUND, b, 1);
    struct scheduler *s = scheduler_new();
    struct scheduler_pick pick;

    (void)state;
    scheduler_add(s, &person);
    scheduler_add(s, &survey);
    assert_true(scheduler_next(s, "d", &pick));
    assert_string_equal(pick.job, "P");
    assert_string_equal(serve(s, "d"), "S/y");
    scheduler_free(s);
}

static void test_jobs_of_one_priority_share(void **state)
{
    struct job_item a[] = { item(0, "a", "x", "d", 100) };
    struct job_item b[] = { item(0, "a", "x", "d", 100) };
    struct job ja = make_job("A", JOB_INTERACTIVE, a, 1);
    struct job jb = make_job("B", JOB_INTERACTIVE, b, 1);
    struct scheduler *s = scheduler_new();
    int served_a = 0;

    (void)state;
    scheduler_add(s, &ja);
    scheduler_add(s, &jb);
    for (int i = 0; i < 40; i++) {
        served_a += serve(s, "d")[0] == 'A';
    }
    assert_int_equal(served_a, 20);
    scheduler_free(s);
}

/* Whichever job ends, the others go on, in their order. */
static void test_jobs_outlast_others(void **state)
{
    static const char *const ids[] = { "A", "B", "C", "D" };

    (void)state;
    for (int ended = 0; ended < 4; ended++) {
        struct scheduler *s = scheduler_new();
        char served[] = "....";

        for (int i = 0; i < 4; i++) {
            struct job_item items[] = { item(0, "a", "x", "d", 1) };
            struct job job = make_job(ids[i], JOB_INTERACTIVE, items, 1);

            scheduler_add(s, &job);
        }
        scheduler_cancel(s, ids[ended]);
        assert_int_equal(scheduler_open_jobs(s), 3);
        for (int i = 0; i < 3; i++) {
            served[i] = serve(s, "d")[0];
        }
        assert_string_equal(served, ended == 0   ? "BCD."
                                    : ended == 1 ? "ACD."
                                    : ended == 2 ? "ABD."
                                                 : "ABC.");
        assert_int_equal(scheduler_open_jobs(s), 0);
        scheduler_free(s);
    }
}

static void test_priority_comes_first(void **state)
{
    struct job_item a[] = { item(0, "a", "x", "d", 3) };
    struct job_item b[] = { item(0, "a", "x", "d", 3) };
    struct job survey = make_job("S", JOB_BACKGROUND, a, 1);
    struct job person = make_job("P", JOB_INTERACTIVE, b, 1);
    struct scheduler *s = scheduler_new();

    (void)state;
    scheduler_add(s, &survey);
    assert_string_equal(serve(s, "d"), "S/x");
    scheduler_add(s, &person);
    assert_string_equal(serve(s, "d"), "P/x");
    assert_string_equal(serve(s, "d"), "P/x");
    assert_string_equal(serve(s, "d"), "P/x");
    assert_string_equal(serve(s, "d"), "S/x");
    scheduler_free(s);
}

static void test_lost_runs_are_run_again(void **state)
{
    struct job_item items[] = { item(0, "a", "u", "d", 1) };
    struct job job = make_job("J", JOB_INTERACTIVE, items, 1);
    struct scheduler *s = scheduler_new();
    struct scheduler_pick pick;

    (void)state;
    scheduler_add(s, &job);
    assert_true(scheduler_next(s, "d", &pick));
    scheduler_finished(s, "J", 0, OUTCOME_LOST, 5, false);
    assert_int_equal(scheduler_open_jobs(s), 1);
    assert_true(scheduler_next(s, "d", &pick));
    scheduler_finished(s, "J", 0, OUTCOME_INFRA, 5, true);
    assert_int_equal(scheduler_open_jobs(s), 0);
    scheduler_free(s);
}

static void test_given_up_ends_the_item(void **state)
{
    struct job_item items[] = { item(0, "a", "u", "d", 5), item(1, "a", "o", "d", 1) };
    struct job job = make_job("J", JOB_INTERACTIVE, items, 2);
    struct scheduler *s = scheduler_new();
    struct scheduler_progress progress;
    struct scheduler_pick pick;

    (void)state;
    scheduler_add(s, &job);
    assert_true(scheduler_next(s, "d", &pick));
    scheduler_finished(s, "J", 0, OUTCOME_COMPLETED, 5, true);
    assert_true(scheduler_progress(s, "J", &progress));
    assert_int_equal(progress.runs_total, 2);
    assert_int_equal(progress.runs_done, 1);
    assert_string_equal(serve(s, "d"), "J/o");
    assert_int_equal(scheduler_open_jobs(s), 0);
    scheduler_free(s);
}

static void test_progress_counts_what_failed(void **state)
{
    struct job_item items[] = { item(0, "a", "u", "d", 3), item(1, "a", "o", "d", 3) };
    struct job job = make_job("J", JOB_INTERACTIVE, items, 2);
    struct scheduler *s = scheduler_new();
    struct scheduler_progress progress;

    (void)state;
    scheduler_add(s, &job);
    serve_as(s, "d", OUTCOME_CRASHED, 1);
    serve_as(s, "d", OUTCOME_TIMEOUT, 1);
    serve_as(s, "d", OUTCOME_COMPLETED, 1);
    progress = progress_of(s, "J");
    assert_int_equal(progress.runs_total, 6);
    assert_int_equal(progress.runs_done, 3);
    assert_int_equal(progress.runs_failed, 2);
    assert_false(scheduler_progress(s, "other", &progress));
    scheduler_free(s);
}

/* Items that a job does not have, jobs that are gone, and no scheduler at all. */
static void test_what_is_not_there_is_left_alone(void **state)
{
    struct job_item items[] = { item(0, "a", "u", "d", 3) };
    struct job job = make_job("J", JOB_INTERACTIVE, items, 1);
    struct scheduler *s = scheduler_new();

    (void)state;
    scheduler_add(s, &job);
    for (int seq = -1; seq <= 1; seq += 2) {
        scheduler_finished(s, "J", seq, OUTCOME_CRASHED, 10, true);
        scheduler_give_up(s, "J", seq);
        scheduler_put_back(s, "J", seq);
    }
    scheduler_finished(s, "other", 0, OUTCOME_CRASHED, 10, true);
    assert_int_equal(progress_of(s, "J").runs_total, 3);
    assert_int_equal(progress_of(s, "J").runs_failed, 0);
    assert_string_equal(serve(s, "d"), "J/u");
    scheduler_give_up(s, "J", 0);
    assert_int_equal(scheduler_open_jobs(s), 0);
    scheduler_free(s);
    scheduler_free(NULL);
}

/* Items of one case and device form a group; any difference makes another. */
static void test_groups_are_of_one_case_and_device(void **state)
{
    struct scheduler *s = scheduler_new();

    (void)state;
    for (int d = 0; d < 7; d++) {
        struct job_item items[] = { item(0, "a", "u", "d", 2),
                                    item(1, "a", "o", "d", 1) };
        struct job job = make_job("J", JOB_INTERACTIVE, items, 2);
        struct case_key *key = &items[1].key;
        bool apart = d > 0;

        key->workload[0] = d == 1 ? 'b' : 'a';
        key->version += d == 2;
        key->size[0] = d == 3 ? 'L' : '\0';
        key->dtype[0] = d == 4 ? 'h' : '\0';
        key->seed += d == 5;
        items[1].stack[0] = d == 6 ? 's' : '\0';
        scheduler_add(s, &job);
        assert_string_equal(serve(s, "d"), "J/u");
        assert_string_equal(serve(s, "d"), apart ? "J/u" : "J/o");
        assert_string_equal(serve(s, "d"), apart ? "J/o" : "J/u");
        assert_int_equal(scheduler_open_jobs(s), 0);
    }
    scheduler_free(s);
}

static void test_a_job_stays_while_a_run_of_it_is_in_flight(void **state)
{
    struct job_item items[] = { item(0, "a", "u", "d", 5), item(1, "a", "o", "e", 1) };
    struct job job = make_job("J", JOB_INTERACTIVE, items, 2);
    struct scheduler *s = scheduler_new();
    struct scheduler_pick pick;

    (void)state;
    scheduler_add(s, &job);
    assert_true(scheduler_next(s, "d", &pick));
    assert_string_equal(pick.item->key.variant, "u");
    assert_string_equal(pick.item->device, "d");
    scheduler_give_up(s, "J", 0);
    assert_string_equal(serve(s, "e"), "J/o");
    assert_int_equal(scheduler_open_jobs(s), 1);
    scheduler_finished(s, "J", 0, OUTCOME_COMPLETED, 10, false);
    assert_int_equal(scheduler_open_jobs(s), 0);
    scheduler_free(s);
}

static void test_restart_counts_are_kept(void **state)
{
    struct job_item items[] = { item(0, "a", "u", "d", 3) };
    struct job job;
    struct scheduler *s = scheduler_new();

    (void)state;
    items[0].runs_answered = 2;
    job = make_job("J", JOB_INTERACTIVE, items, 1);
    scheduler_add(s, &job);
    assert_string_equal(serve(s, "d"), "J/u");
    assert_string_equal(serve(s, "d"), "");
    scheduler_free(s);
}

static void test_cancel_forgets(void **state)
{
    struct job_item items[] = { item(0, "a", "u", "d", 3) };
    struct job job = make_job("J", JOB_INTERACTIVE, items, 1);
    struct scheduler *s = scheduler_new();
    struct scheduler_pick pick;

    (void)state;
    scheduler_add(s, &job);
    assert_true(scheduler_next(s, "d", &pick));
    scheduler_cancel(s, "J");
    scheduler_finished(s, "J", 0, OUTCOME_CANCELLED, 5, false);
    assert_false(scheduler_next(s, "d", &pick));
    scheduler_free(s);
}

/* A job that localises runs its items one run at a time, each when it is told to. */
static void test_items_that_wait(void **state)
{
    struct job_item items[] = { item(0, "a", "u", "d", 2), item(1, "a", "u", "d", 1) };
    struct job_item other[] = { item(0, "b", "x", "d", 9) };
    struct job job = make_job("J", JOB_INTERACTIVE, items, 2);
    struct job background = make_job("B", JOB_BACKGROUND, other, 1);
    struct scheduler *s = scheduler_new();
    struct scheduler_pick pick;
    struct run_options capture = options_of("{\"capture\":\"0:1:p\"}");

    (void)state;
    job.localise_runs = 2;
    scheduler_add(s, &background);
    scheduler_add(s, &job);
    assert_string_equal(serve(s, "d"), ""); /* the device waits, too */
    scheduler_release(s, "J", 0, NULL);
    assert_string_equal(serve(s, "d"), "J/u");
    assert_string_equal(serve(s, "d"), "");
    scheduler_give_up(s, "J", 0);
    scheduler_release(s, "J", 1, &capture);
    assert_true(scheduler_next(s, "d", &pick));
    assert_string_equal(pick.job, "J");
    assert_int_equal(pick.item->seq, 1);
    check_options(&pick.item->options, "{\"capture\":\"0:1:p\"}");
    scheduler_put_back(s, "J", 1);
    assert_string_equal(serve(s, "d"), "J/u"); /* put back: it need not ask again */
    assert_string_equal(serve(s, "d"), "B/x");
    assert_int_equal(scheduler_open_jobs(s), 1);
    scheduler_release(s, "J", 0, NULL); /* it is gone */
    scheduler_give_up(s, "J", 7);
    scheduler_free(s);
}

/* The device of its first item waits, and no other; one run a look is enough to wait. */
static void test_only_its_device_waits_for_a_look(void **state)
{
    struct job_item items[] = { item(0, "a", "u", "d", 2), item(1, "a", "u", "e", 2) };
    struct job_item other[] = { item(0, "b", "x", "d", 9), item(1, "b", "x", "e", 9) };
    struct job job = make_job("J", JOB_INTERACTIVE, items, 2);
    struct job background = make_job("B", JOB_BACKGROUND, other, 2);
    struct scheduler *s = scheduler_new();

    (void)state;
    job.localise_runs = 1;
    scheduler_add(s, &job);
    scheduler_add(s, &background);
    assert_string_equal(serve(s, "d"), "");
    assert_string_equal(serve(s, "e"), "B/x");
    scheduler_free(s);
}

/* Jobs of equal priority do not wait for the look of another. */
static void test_looking_holds_no_equals(void **state)
{
    struct job_item a[] = { item(0, "a", "u", "d", 5) };
    struct job_item b[] = { item(0, "b", "x", "d", 5) };
    struct job localises = make_job("J", JOB_INTERACTIVE, a, 1);
    struct job equal = make_job("E", JOB_INTERACTIVE, b, 1);
    struct scheduler *s = scheduler_new();

    (void)state;
    localises.localise_runs = 2;
    scheduler_add(s, &localises);
    scheduler_add(s, &equal);
    scheduler_release(s, "J", 0, NULL);
    assert_string_equal(serve(s, "d"), "J/u");
    assert_string_equal(serve(s, "d"), "E/x");
    assert_string_equal(serve(s, "other"), "");
    scheduler_release(s, "J", 0, NULL);
    assert_string_equal(serve(s, "d"), "J/u");
    scheduler_free(s);
}

static void note_device(void *arg, const char *device)
{
    char *seen = arg;

    snprintf(seen + strlen(seen), 64 - strlen(seen), "%s ", device);
}

static const char *devices_of(const struct scheduler *s, char seen[64])
{
    seen[0] = '\0';
    scheduler_each_device(s, note_device, seen);
    return seen;
}

/* Also for what waits, and what is in flight. */
static void test_which_devices_have_work(void **state)
{
    struct job_item items[] = { item(0, "a", "u", "d", 1), item(1, "a", "v", "d", 1),
                                item(2, "a", "u", "e", 1), item(3, "a", "v", "f", 1) };
    struct job job = make_job("A", JOB_BACKGROUND, items, 4);
    struct scheduler *s = scheduler_new();
    struct scheduler_pick pick;
    char seen[64];

    (void)state;
    assert_string_equal(devices_of(s, seen), "");
    items[3].held = true;
    scheduler_add(s, &job);
    assert_string_equal(devices_of(s, seen), "d e f ");
    assert_true(scheduler_next(s, "e", &pick));
    assert_string_equal(devices_of(s, seen), "d e f ");
    scheduler_finished(s, "A", 2, OUTCOME_COMPLETED, 1, false);
    assert_string_equal(devices_of(s, seen), "d f ");
    scheduler_give_up(s, "A", 3);
    assert_true(scheduler_next(s, "d", &pick));
    scheduler_give_up(s, "A", 0);
    scheduler_give_up(s, "A", 1); /* one of them is in flight */
    assert_string_equal(devices_of(s, seen), "d ");
    scheduler_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_item_may_have_time_of_its_own),
        cmocka_unit_test(test_variants_alternate_within_a_group),
        cmocka_unit_test(test_cases_take_turns_where_imports_are_shared),
        cmocka_unit_test(test_one_run_in_flight_an_item),
        cmocka_unit_test(test_the_variant_with_the_fewest_attempts_is_next),
        cmocka_unit_test(test_a_busy_job_holds_no_device),
        cmocka_unit_test(test_jobs_of_one_priority_share),
        cmocka_unit_test(test_jobs_outlast_others),
        cmocka_unit_test(test_priority_comes_first),
        cmocka_unit_test(test_lost_runs_are_run_again),
        cmocka_unit_test(test_given_up_ends_the_item),
        cmocka_unit_test(test_progress_counts_what_failed),
        cmocka_unit_test(test_what_is_not_there_is_left_alone),
        cmocka_unit_test(test_groups_are_of_one_case_and_device),
        cmocka_unit_test(test_a_job_stays_while_a_run_of_it_is_in_flight),
        cmocka_unit_test(test_restart_counts_are_kept),
        cmocka_unit_test(test_cancel_forgets),
        cmocka_unit_test(test_items_that_wait),
        cmocka_unit_test(test_only_its_device_waits_for_a_look),
        cmocka_unit_test(test_looking_holds_no_equals),
        cmocka_unit_test(test_which_devices_have_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
