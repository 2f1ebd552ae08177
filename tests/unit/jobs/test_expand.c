/* What a request for a job becomes: cases, devices and defaults. */
#include "tests/unit/jobs/expand_fixture.h"
#include "tests/unit/jobs/options_fixture.h"

static void test_defaults(void **state)
{
    struct job job = expand("{}");

    (void)state;
    /* cpu:a has ctc x 2 and wgrad x 2, GPU-1 has wgrad x 1; cpu:b is offline. */
    assert_int_equal(job.item_count, 5);
    assert_int_equal(job.runs_total, 25);
    assert_int_equal(job.iterations, 10);
    assert_int_equal(job.timeout_ms, 60000);
    assert_int_equal(job.priority, JOB_INTERACTIVE);
    assert_false(job.stop_when_varies);
    assert_false(job.survey);
    assert_string_equal(job.request, "{}");
    assert_string_equal(job.items[0].key.workload, "ctc");
    assert_string_equal(job.items[0].no_control, "fixed order");
    assert_false(job.items[0].is_control);
    assert_string_equal(job.items[2].key.variant, "unordered");
    assert_true(job.items[2].is_control);
    assert_string_equal(job.items[2].kind, "race");
    assert_string_equal(job.items[4].kind, "choice");
    assert_string_equal(job.items[4].device, "GPU-1");
    assert_string_equal(job.items[4].stack, "cudnn9");
    assert_string_equal(job.items[4].key.size, "large");
    assert_int_equal(job.items[4].key.version, 3);
    for (int i = 0; i < job.item_count; i++) {
        assert_int_equal(job.items[i].seq, i);
        assert_int_equal(job.items[i].runs_wanted, 5);
        assert_int_equal(job.items[i].key.seed, 1);
    }
    job_release(&job);
}

static void test_variants_of_a_case_are_adjacent(void **state)
{
    struct job job = expand(
        "{'workloads':['wgrad'],'devices':['cpu:a'],'sizes':['small',"
        "'large'],'dtypes':['float64','float32'],'seeds':[1,2]}");

    (void)state;
    assert_int_equal(job.item_count, 16);
    for (int i = 0; i < job.item_count; i += 2) {
        const struct case_key *a = &job.items[i].key;
        const struct case_key *b = &job.items[i + 1].key;

        assert_string_equal(a->variant, "unordered");
        assert_string_equal(b->variant, "ordered");
        assert_string_equal(a->size, b->size);
        assert_string_equal(a->dtype, b->dtype);
        assert_int_equal(a->seed, b->seed);
    }
    job_release(&job);
}

static void test_a_variant_applies_to_those_that_have_it(void **state)
{
    struct job job = expand("{'variants':['patched','unordered'],'devices':['cpu:a']}");

    (void)state;
    assert_int_equal(job.item_count, 2);
    assert_string_equal(job.items[0].key.variant, "patched");
    assert_string_equal(job.items[1].key.variant, "unordered");
    job_release(&job);
}

static void test_survey_changes_defaults_only(void **state)
{
    struct job job = expand("{'survey':true}");

    (void)state;
    assert_true(job.survey && job.stop_when_varies);
    assert_int_equal(job.priority, JOB_BACKGROUND);
    assert_int_equal(job.item_count, 6);
    job_release(&job);
    job = expand(
        "{'survey':true,'stop_when_varies':false,'priority':'interactive',"
        "'runs':2,'workloads':['ctc'],'note':'x'}");
    assert_false(job.stop_when_varies);
    assert_int_equal(job.priority, JOB_INTERACTIVE);
    assert_int_equal(job.runs_total, 4);
    job_release(&job);
}

static void test_seeds_keep_all_bits(void **state)
{
    struct job job = expand(
        "{'seeds':['18446744073709551615',7],'workloads':['ctc'],"
        "'variants':['ordered'],'timeout_seconds':0.25}");

    (void)state;
    assert_true(job.items[0].key.seed == UINT64_MAX);
    assert_int_equal(job.items[1].key.seed, 7);
    assert_int_equal(job.timeout_ms, 250);
    assert_non_null(strstr(job.request, "\"18446744073709551615\""));
    job_release(&job);
}

/* A request of one localisation, with MORE members. */
static const char *localise(const char *more)
{
    static char text[512];

    snprintf(text, sizeof text,
             "{'workloads':['wgrad'],'variants':['unordered'],'devices':['cpu:a'],"
             "'localise':true%s}",
             more);
    return text;
}

static void test_localise(void **state)
{
    struct job job;

    (void)state;
    job = expand(localise(""));
    assert_int_equal(job.localise_runs, 5);
    assert_int_equal(job.item_count, 2);
    assert_int_equal(job.iterations, 1);
    assert_int_equal(job.runs_total, 400);
    check_options(&job.items[0].options, "{\"probes\":1}");
    check_options(&job.items[1].options, "");
    assert_int_equal(job.items[1].seq, 1);
    assert_string_equal(job.items[1].key.variant, "unordered");
    job_release(&job);
    job = expand(localise(",'runs':2,'runs_max':7,'iterations':3"));
    assert_int_equal(job.localise_runs, 2);
    assert_int_equal(job.iterations, 3);
    assert_int_equal(job.items[1].runs_wanted, 7);
    job_release(&job);
    job = expand(localise(",'contention':2"));
    check_options(&job.items[0].options, "{\"contention\":2,\"probes\":1}");
    check_options(&job.items[1].options, "{\"contention\":2}");
    job_release(&job);
    job = expand(localise(",'probes':{'every':10,'names':'conv*'}"));
    check_options(&job.items[0].options, "{\"probe-names\":\"conv*\",\"probes\":10}");
    check_options(&job.items[1].options, "");
    job_release(&job);
}

static void test_what_cannot_be_localised(void **state)
{
    (void)state;
    refuse(localise(",'runs':1"), PROBLEM_INVALID, "/runs", "2 to runs_max");
    refuse(localise(",'runs':9,'runs_max':8"), PROBLEM_INVALID, "/runs", "runs_max (8)");
    refuse(localise(",'stop_when_varies':true"), PROBLEM_INVALID, "/stop_when_varies",
           "localise");
    refuse(localise(",'probes':false"), PROBLEM_INVALID, "/probes", "has probes");
    refuse(localise(",'seeds':[1,2,3]"), PROBLEM_INVALID, "/seeds",
           "name one of '1', '2', '3'");
    refuse("{'workloads':['wgrad'],'devices':['cpu:a'],'localise':true}", PROBLEM_INVALID,
           "/variants", "'unordered', 'ordered'");
    refuse(
        "{'workloads':['wgrad'],'variants':['unordered'],'devices':['GPU-1'],"
        "'stacks':'all','localise':true}",
        PROBLEM_INVALID, "/stacks", "'cudnn9', 'cudnn8'");
    refuse("{'runs_max':7}", PROBLEM_INVALID, "/runs_max", "localise");
    refuse("{'localise':1}", PROBLEM_INVALID, "/localise", "true or false");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_variants_of_a_case_are_adjacent),
        cmocka_unit_test(test_a_variant_applies_to_those_that_have_it),
        cmocka_unit_test(test_survey_changes_defaults_only),
        cmocka_unit_test(test_seeds_keep_all_bits),
        cmocka_unit_test(test_localise),
        cmocka_unit_test(test_what_cannot_be_localised),
    };

    return cmocka_run_group_tests(tests, make_catalogue, free_catalogue);
}
