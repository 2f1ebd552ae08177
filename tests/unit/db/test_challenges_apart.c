/* Challenges (db/cases/challenges.h): what they must not touch, and where they are
 * listed. */
#include "tests/unit/db/challenges_fixture.h"

static enum err_code read_job(struct tx *tx, void *arg, struct err *err)
{
    return jobs_get(tx, "01J00000000000000000000001", arg, err);
}

static enum err_code read_run(struct tx *tx, void *arg, struct err *err)
{
    struct run_record *run = arg;

    return runs_get(tx, run->id, run, err);
}

static struct run_record stored(struct fixture *f, int n)
{
    struct run_record run;

    fixture_id('R', n, run.id);
    fixture_read(f, read_run, &run);
    return run;
}

/* Neither the cell nor the job gets it. */
static void test_a_challenge_is_nobody_elses_measurement(void **state)
{
    struct fixture *f = *state;
    struct cell before, after;
    struct run_record run;
    struct job job;

    make_steady(f);
    before = fixture_cell(f, "ordered");
    store_run(f, challenge(5, STEADY));
    store_run(f, challenge(6, STEADY_LOADED));
    after = fixture_cell(f, "ordered");
    assert_memory_equal(before.evidence.runs, after.evidence.runs,
                        sizeof after.evidence.runs);
    assert_int_equal(after.evidence.iterations, before.evidence.iterations);
    assert_int_equal(after.evidence.distinct_digests, 1);
    assert_int_equal(after.evidence.last_completed_ms, before.evidence.last_completed_ms);
    assert_int_equal(after.evidence.devices, before.evidence.devices);
    assert_int_equal(after.median_ns_sum, before.median_ns_sum);
    assert_int_equal(after.max_ns, before.max_ns);
    assert_int_equal(after.last_ms, before.last_ms);
    assert_string_equal(after.evidence.contested, "");
    assert_challenges(f, 2, 0, 0, 0);
    fixture_read(f, read_job, &job);
    assert_int_equal(job.runs_done, 3);
    assert_int_equal(job.items[STEADY].runs_answered, 2);
    job_release(&job);
    run = stored(f, 5);
    assert_true(run.is_challenge);
    assert_int_equal(run.challenged, after.id);
    assert_int_equal(run.key.seed, SEED + 5);
    assert_int_not_equal(run.cell, after.id);
    run = stored(f, 4);
    assert_false(run.is_challenge);
    assert_int_equal(run.challenged, 0);
    check_all(f);
}

/* Its item's options are not requested of it. */
static enum err_code read_asked(struct tx *tx, void *arg, struct err *err)
{
    int64_t iterations;

    return runs_asked(tx, "01R00000000000000000000006", arg, &iterations, err);
}

static void test_a_challenge_is_a_plain_run(void **state)
{
    struct fixture *f = *state;
    struct run_options options;

    make_steady(f);
    store_run(f, challenge(6, STEADY_LOADED));
    fixture_read(f, read_asked, &options);
    assert_int_equal(options.circumstances.contention, 0);
    check_all(f);
}

struct listed {
    struct runs_filter filter;
    int count;
};

static void count_run(void *arg, const struct run_record *run)
{
    struct listed *l = arg;

    assert_int_equal(run->is_challenge, l->filter.challenges);
    l->count++;
}

static enum err_code list(struct tx *tx, void *arg, struct err *err)
{
    struct listed *l = arg;

    return runs_list(tx, &l->filter, "", 100, count_run, l, err);
}

static int count_listed(struct fixture *f, struct runs_filter filter)
{
    struct listed l = { .filter = filter };

    fixture_read(f, list, &l);
    return l.count;
}

static void test_challenges_are_listed_apart(void **state)
{
    struct fixture *f = *state;
    struct runs_filter of_job = { .job = "01J00000000000000000000001" };
    struct runs_filter of_cell = { .challenges = true };

    make_steady(f);
    store_run(f, challenge(5, STEADY));
    of_cell.cell = fixture_cell(f, "ordered").id;
    assert_int_equal(count_listed(f, of_job), 3);
    assert_int_equal(count_listed(f, of_cell), 1);
    of_cell.challenges = false;
    assert_int_equal(count_listed(f, of_cell), 2);
    of_job.challenges = true;
    assert_int_equal(count_listed(f, of_job), 2);
    of_job.by_outcome = true;
    of_job.outcome = OUTCOME_CRASHED;
    assert_int_equal(count_listed(f, of_job), 0);
    assert_int_equal(count_listed(f, (struct runs_filter){ .challenges = true }), 2);
}

struct seeds {
    int count;
    bool other; /* one that is not 1 */
};

static void take_seed(void *arg, const struct cell *cell)
{
    struct seeds *seeds = arg;

    seeds->count++;
    seeds->other |= cell->key.seed != 1;
}

static enum err_code each_cell(struct tx *tx, void *arg, struct err *err)
{
    return cells_each(tx, "00000000000000000000000000000001", 0, take_seed, arg, err);
}

/* The case that a challenge computed is shown when a job requests it, and then the
 * challenge is a run of it like any other. */
static void test_the_case_of_a_challenge_is_shown_if_requested(void **state)
{
    struct fixture *f = *state;
    struct job_item item = fixture_item("ordered", "cpu:a", 5);
    struct fixture_job j = fixture_job(2, &item, 1);
    struct seeds seeds = { .count = 0 };

    make_steady(f);
    store_run(f, challenge(5, STEADY));
    fixture_read(f, each_cell, &seeds);
    assert_int_equal(seeds.count, 2);
    assert_false(seeds.other);
    item.key.seed = SEED + 5;
    snprintf(item.stack, sizeof item.stack, "external");
    fixture_write(f, fixture_insert_job, &j);
    seeds.count = 0;
    fixture_read(f, each_cell, &seeds);
    assert_int_equal(seeds.count, 3);
    assert_true(seeds.other);
    store_run(f, challenge(5 + 100, STEADY)); /* others stay hidden */
    seeds.count = 0;
    fixture_read(f, each_cell, &seeds);
    assert_int_equal(seeds.count, 3);
    check_all(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_a_challenge_is_nobody_elses_measurement),
        STORE_TEST(test_a_challenge_is_a_plain_run),
        STORE_TEST(test_challenges_are_listed_apart),
        STORE_TEST(test_the_case_of_a_challenge_is_shown_if_requested),
    };

    return cmocka_run_group_tests_name("challenges apart", tests, NULL, NULL);
}
