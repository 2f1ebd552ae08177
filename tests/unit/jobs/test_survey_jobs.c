/* One job for a fleet that fits into one, and one for each device, or for each of its
 * stacks, for a fleet that does not: nothing is left out and nothing is twice. */
#include "daemon/jobs/survey_jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { LINES = 571, STACKS_MAX = 20, DEVICES_MAX = 200 };

static struct catalogue *catalogue;
static struct device_stack devices[DEVICES_MAX];
static char names[DEVICES_MAX][16];

static int make_catalogue(void **state)
{
    json_t *variants = json_array();
    json_t *workloads;
    struct err err;

    (void)state;
    for (int i = 0; i < LINES; i++) {
        char name[16];

        snprintf(name, sizeof name, "v%d", i);
        json_array_append_new(variants,
                              json_pack("{s:s,s:s,s:s,s:s,s:n,s:s,s:b}", "name", name,
                                        "summary", "s", "models", "m", "algorithm", "a",
                                        "claim", "subject", "model", "control", i == 0));
    }
    workloads = json_pack("[{s:s,s:i,s:s,s:s,s:s,s:o,s:[{s:s,s:s}],s:[s],s:s,s:n,s:n}]",
                          "workload", "w", "version", 1, "backend", "cuda", "title", "t",
                          "summary", "s", "variants", variants, "sizes", "name", "small",
                          "description", "d", "dtypes", "float32", "weight_sum", "w",
                          "loss", "no_control");
    catalogue = catalogue_new();
    assert_int_equal(catalogue_add(catalogue, workloads, &err), ERR_OK);
    json_decref(workloads);
    return 0;
}

static int free_catalogue(void **state)
{
    (void)state;
    catalogue_free(catalogue);
    return 0;
}

/* COUNT devices with STACKS stacks each. */
static int make_devices(int count, int stacks)
{
    static const char *const stack_names[STACKS_MAX] = { "a", "b", "c", "d", "e",
                                                         "f", "g", "h", "i", "j",
                                                         "k", "l", "m", "n", "o",
                                                         "p", "q", "r", "s", "t" };

    for (int i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "GPU-%d", i);
        for (int s = 0; s < stacks; s++) {
            devices[i * stacks + s] = (struct device_stack){ .id = names[i],
                                                             .backend = "cuda",
                                                             .stack = stack_names[s],
                                                             .host = "h",
                                                             .is_default = s == 0,
                                                             .online = true };
        }
    }
    return count * stacks;
}

static void check(int device_count, int jobs_wanted, int items_wanted, int devices_wanted)
{
    struct survey_jobs jobs;
    struct problems problems = { .count = 0 };
    int items = 0;

    assert_int_equal(survey_jobs_make(catalogue, devices, device_count, &jobs, &problems),
                     ERR_OK);
    assert_int_equal(problems.count, 0);
    assert_int_equal(jobs.count, jobs_wanted);
    for (int i = 0; i < jobs.count; i++) {
        const struct job *job = &jobs.jobs[i];

        assert_true(job->survey && job->stop_when_varies);
        assert_int_equal(job->priority, JOB_BACKGROUND);
        assert_int_equal(job->item_count, items_wanted);
        items += job->item_count;
        for (int n = 0; n < job->item_count && devices_wanted == 1; n++) {
            assert_string_equal(job->items[n].device, job->items[0].device);
        }
    }
    assert_int_equal(items, LINES * device_count);
    survey_jobs_release(&jobs);
}

static void test_a_fleet_that_fits_is_one_job(void **state)
{
    (void)state;
    check(make_devices(17, 1), 1, 17 * LINES, 17);
    check(make_devices(8, 2), 1, 16 * LINES, 8);
}

static void test_a_hundred_gpus_are_a_hundred_jobs(void **state)
{
    (void)state;
    check(make_devices(100, 1), 100, LINES, 1);
    check(make_devices(100, 2), 100, 2 * LINES, 1);
}

static void test_many_stacks_are_a_job_each(void **state)
{
    (void)state;
    check(make_devices(2, STACKS_MAX), 2 * STACKS_MAX, LINES, 1);
}

/* Where a configuration has workloads that no survey measures. */
static void test_a_stack_without_work_has_no_job(void **state)
{
    json_t *unsurveyed = json_pack("[{s:s,s:b}]", "workload", "own", "survey", 0);
    int count = make_devices(2, STACKS_MAX);
    struct survey_jobs jobs;
    struct problems problems = { .count = 0 };

    (void)state;
    devices[1].catalogue = unsurveyed;
    assert_int_equal(survey_jobs_make(catalogue, devices, count, &jobs, &problems),
                     ERR_OK);
    assert_int_equal(problems.count, 0);
    assert_int_equal(jobs.count, count - 1);
    survey_jobs_release(&jobs);
    for (int i = 0; i < count; i++) {
        devices[i].catalogue = unsurveyed;
    }
    assert_int_equal(survey_jobs_make(catalogue, devices, count, &jobs, &problems),
                     ERR_INVALID);
    assert_int_equal(jobs.count, 0);
    assert_int_equal(problems.count, 1);
    problems_release(&problems);
    json_decref(unsurveyed);
}

static void test_what_is_offline_is_left_out(void **state)
{
    struct survey_jobs jobs;
    struct problems problems = { .count = 0 };
    int count = make_devices(100, 1);

    (void)state;
    devices[7].online = false;
    assert_int_equal(survey_jobs_make(catalogue, devices, count, &jobs, &problems),
                     ERR_OK);
    assert_int_equal(jobs.count, 99);
    survey_jobs_release(&jobs);
    for (int i = 0; i < count; i++) {
        devices[i].online = false;
    }
    assert_int_equal(survey_jobs_make(catalogue, devices, count, &jobs, &problems),
                     ERR_BUSY);
    assert_int_equal(jobs.count, 0);
    problems_release(&problems);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fleet_that_fits_is_one_job),
        cmocka_unit_test(test_a_hundred_gpus_are_a_hundred_jobs),
        cmocka_unit_test(test_many_stacks_are_a_job_each),
        cmocka_unit_test(test_a_stack_without_work_has_no_job),
        cmocka_unit_test(test_what_is_offline_is_left_out),
    };

    return cmocka_run_group_tests_name("survey_jobs", tests, make_catalogue,
                                       free_catalogue);
}
