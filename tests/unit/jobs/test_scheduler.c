/* The scheduler as a pure state machine: order, fairness, bounds. */
#include "daemon/jobs/scheduler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/mem.h"
#include "tests/unit/jobs/options_fixture.h"

static struct job_item item(int seq, const char *workload, const char *variant,
                            const char *device, int runs)
{
    struct job_item i = { .seq = seq, .runs_wanted = runs };

    copy_text(i.key.workload, sizeof i.key.workload, workload);
    copy_text(i.key.variant, sizeof i.key.variant, variant);
    copy_text(i.device, sizeof i.device, device);
    return i;
}

static struct job make_job(const char *id, enum job_priority priority,
                           struct job_item *items, int count)
{
    struct job j = { .priority = priority, .iterations = 7, .timeout_ms = 1000 };

    copy_text(j.id, sizeof j.id, id);
    j.items = items;
    j.item_count = count;
    return j;
}

/* Picks on DEVICE and finishes at once; returns "job/variant" or "". */
static const char *serve_as(struct scheduler *s, const char *device, enum outcome outcome,
                            int64_t ms)
{
    static char text[128];
    struct scheduler_pick pick;
    char id[ID_SIZE];

    if (!scheduler_next(s, device, &pick)) {
        return "";
    }
    snprintf(text, sizeof text, "%s/%s", pick.job, pick.item->key.variant);
    copy_text(id, sizeof id, pick.job);
    scheduler_finished(s, id, pick.item->seq, outcome, ms, false);
    return text;
}

static const char *serve(struct scheduler *s, const char *device)
{
    return serve_as(s, device, OUTCOME_COMPLETED, 10);
}

static struct scheduler_progress progress_of(const struct scheduler *s, const char *id)
{
    struct scheduler_progress progress;

    assert_true(scheduler_progress(s, id, &progress));
    return progress;
}

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

/* What is picked is borrowed until its run is finished. */
static void test_a_job_stays_while_a_run_of_it_is_in_flight(void **state)
{
    struct job_item items[] = { item(0, "a", "u", "d", 5), item(1, "a", "o", "e", 1) };
    struct job job = make_job("J", JOB_INTERACTIVE, items, 2);
    struct scheduler *s = scheduler_new();
    struct scheduler_pick pick;

    (void)state;
    scheduler_add(s, &job);
    assert_true(scheduler_next(s, "d", &pick));
    scheduler_give_up(s, "J", 0);
    assert_string_equal(serve(s, "e"), "J/o");
    assert_int_equal(scheduler_open_jobs(s), 1);
    assert_string_equal(pick.item->key.variant, "u");
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
        cmocka_unit_test(test_an_item_may_have_time_of_its_own),
        cmocka_unit_test(test_variants_alternate_within_a_group),
        cmocka_unit_test(test_a_challenge_comes_at_any_place),
        cmocka_unit_test(test_challenges_are_no_answers),
        cmocka_unit_test(test_what_stops_early_is_challenged_before),
        cmocka_unit_test(test_a_localisation_has_no_challenges),
        cmocka_unit_test(test_one_run_in_flight_an_item),
        cmocka_unit_test(test_the_variant_with_the_fewest_attempts_is_next),
        cmocka_unit_test(test_a_busy_job_holds_no_device),
        cmocka_unit_test(test_jobs_of_one_priority_share),
        cmocka_unit_test(test_jobs_outlast_others),
        cmocka_unit_test(test_priority_comes_first),
        cmocka_unit_test(test_lost_runs_are_run_again),
        cmocka_unit_test(test_given_up_ends_the_item),
        cmocka_unit_test(test_eta_counts_higher_priority_work),
        cmocka_unit_test(test_eta_leaves_out_equals),
        cmocka_unit_test(test_eta_counts_what_each_item_takes),
        cmocka_unit_test(test_eta_is_that_of_the_slowest_device),
        cmocka_unit_test(test_eta_of_what_takes_no_time),
        cmocka_unit_test(test_progress_counts_what_failed),
        cmocka_unit_test(test_what_is_not_there_is_left_alone),
        cmocka_unit_test(test_groups_are_of_one_case_and_device),
        cmocka_unit_test(test_a_job_stays_while_a_run_of_it_is_in_flight),
        cmocka_unit_test(test_restart_counts_are_kept),
        cmocka_unit_test(test_cancel_forgets),
        cmocka_unit_test(test_items_that_wait),
        cmocka_unit_test(test_only_its_device_waits_for_a_look),
        cmocka_unit_test(test_looking_holds_no_equals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
