/* Circumstances and probes of a job, as further arguments of the worker. */
#include "tests/unit/jobs/expand_fixture.h"

#include "daemon/trace/trace.h"
#include "tests/unit/jobs/options_fixture.h"

static void expect_options(const char *request, const char *options)
{
    struct job job = expand(request);

    for (int i = 0; i < job.item_count; i++) {
        check_options(&job.items[i].options, options);
    }
    job_release(&job);
}

static void test_circumstances(void **state)
{
    static const char *const wrong[] = { "0", "-1", "65", "1.5", "'4'", "null", "true" };

    (void)state;
    expect_options("{'memory_poison':false,'allocation_jitter':false}", "");
    expect_options("{'memory_poison':true,'contention':64,'allocation_jitter':true}",
                   "{\"allocation-jitter\":\"random\",\"contention\":64,"
                   "\"memory-poison\":\"random\"}");
    expect_options(
        "{'memory_poison':'0badcafe','allocation_jitter':'18446744073709551615'}",
        "{\"allocation-jitter\":\"18446744073709551615\","
        "\"memory-poison\":\"0badcafe\"}");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[64];

        snprintf(text, sizeof text, "{'contention':%s}", wrong[i]);
        refuse(text, PROBLEM_INVALID, "/contention", "from 1 to 64");
    }
    refuse("{'memory_poison':'0BADCAFE'}", PROBLEM_INVALID, "/memory_poison", "8 hex");
    refuse("{'memory_poison':'random'}", PROBLEM_INVALID, "/memory_poison", "8 hex");
    refuse("{'memory_poison':1}", PROBLEM_INVALID, "/memory_poison", "true, false or");
    refuse("{'allocation_jitter':7}", PROBLEM_INVALID, "/allocation_jitter", "a seed");
    refuse("{'allocation_jitter':'18446744073709551616'}", PROBLEM_INVALID,
           "/allocation_jitter", "a seed");
    refuse("{'allocation_jitter':'007'}", PROBLEM_INVALID, "/allocation_jitter",
           "without leading zeros");
    refuse("{'shared_import':1}", PROBLEM_INVALID, "/shared_import", "");
    refuse("{'shared_import':true}", PROBLEM_INVALID, "/shared_import",
           "cannot compute under shared_import");
    expect_options("{'shared_import':false}", "");
    refuse("{'contentions':4}", PROBLEM_UNKNOWN_MEMBER, "/contentions", "'contention'?");
}

/* A workload that lists circumstances can compute under no other. */
static void test_circumstances_of_a_workload(void **state)
{
    (void)state;
    expect_options("{'workloads':['quiet']}", "");
    expect_options("{'workloads':['quiet'],'contention':2}", "{\"contention\":2}");
    refuse("{'workloads':['quiet'],'memory_poison':true}", PROBLEM_INVALID,
           "/memory_poison", "workload 'quiet' cannot compute under memory_poison");
    refuse("{'workloads':['ctc','quiet'],'contention':2,'allocation_jitter':'7'}",
           PROBLEM_INVALID, "/allocation_jitter",
           "workload 'quiet' cannot compute under allocation_jitter");
    expect_options("{'workloads':['ctc'],'memory_poison':true}",
                   "{\"memory-poison\":\"random\"}");
}

static void test_probes(void **state)
{
    static const char *const wrong[] = { "0",    "-1", "1.5",          "'1'",
                                         "null", "[]", "1000000000001" };
    static const char *const wrong_steps[] = { "1",      "[]",      "[1]",      "[2,1]",
                                               "[-1,2]", "[1,2,3]", "['1','2']" };
    char text[512];

    (void)state;
    expect_options("{'probes':false}", "");
    expect_options("{'probes':true}", "{\"probes\":1}");
    expect_options("{'probes':10}", "{\"probes\":10}");
    expect_options("{'probes':{}}", "{\"probes\":1}");
    expect_options("{'probes':{'every':2,'names':'conv*','steps':[0,99]},'contention':2}",
                   "{\"contention\":2,\"probe-names\":\"conv*\","
                   "\"probe-steps\":\"0-99\",\"probes\":2}");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(text, sizeof text, "{'probes':%s}", wrong[i]);
        refuse(text, PROBLEM_INVALID, "/probes", "true, false, an object or a number");
        if (strcmp(wrong[i], "null") != 0) {
            snprintf(text, sizeof text, "{'probes':{'every':%s}}", wrong[i]);
            refuse(text, PROBLEM_INVALID, "/probes/every", "a number of steps from 1");
        }
    }
    for (size_t i = 0; i < sizeof wrong_steps / sizeof wrong_steps[0]; i++) {
        snprintf(text, sizeof text, "{'probes':{'steps':%s}}", wrong_steps[i]);
        refuse(text, PROBLEM_INVALID, "/probes/steps", "first and the last");
    }
    refuse("{'probes':{'names':''}}", PROBLEM_INVALID, "/probes/names", "glob");
    refuse("{'probes':{'names':'-x'}}", PROBLEM_INVALID, "/probes/names", "begin with");
    refuse("{'probes':{'names':7}}", PROBLEM_INVALID, "/probes/names", "glob");
    snprintf(text, sizeof text, "{'probes':{'names':'%0*d'}}", TRACE_PLACE_MAX + 1, 0);
    refuse(text, PROBLEM_INVALID, "/probes/names", "1 to 128 bytes");
    refuse("{'probes':{'name':'x'}}", PROBLEM_UNKNOWN_MEMBER, "/probes", "'names'?");
    refuse("{'probe':true}", PROBLEM_UNKNOWN_MEMBER, "/probe", "'probes'?");
}

/* What is asked for at most is stored whole. */
static void test_the_longest_options_fit(void **state)
{
    char text[512];
    char names[TRACE_PLACE_MAX + 1];
    char stored[RUN_OPTIONS_SIZE];
    json_t *options;
    struct job job;

    (void)state;
    memset(names, 'x', sizeof names);
    names[TRACE_PLACE_MAX] = '\0';
    snprintf(text, sizeof text,
             "{'memory_poison':'0badcafe','allocation_jitter':'18446744073709551615',"
             "'contention':64,'probes':{'every':1000000000000,'names':'%s','steps':"
             "[1000000000000,1000000000000]}}",
             names);
    job = expand(text);
    assert_true(run_options_write(&job.items[0].options, stored));
    assert_non_null(strstr(stored, names));
    options = json_loads(stored, 0, NULL);
    assert_int_equal(json_object_size(options), 6);
    json_decref(options);
    job_release(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_circumstances),
        cmocka_unit_test(test_circumstances_of_a_workload),
        cmocka_unit_test(test_probes),
        cmocka_unit_test(test_the_longest_options_fit),
    };

    return cmocka_run_group_tests(tests, make_catalogue, free_catalogue);
}
