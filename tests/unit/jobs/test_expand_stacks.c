/* Which devices and stacks the cases of a job get. */
#include "tests/unit/jobs/expand_fixture.h"

static void test_a_named_device_may_be_offline(void **state)
{
    struct job job = expand("{'devices':['cpu:b']}");

    (void)state;
    assert_int_equal(job.item_count, 4);
    job_release(&job);
}

/* Which stacks GPU-1 gets, of its first, cudnn9, and cudnn8. */
static void expect_stacks(const char *text, const char *first, const char *second)
{
    struct job job = expand(text);
    const struct job_item *items = job.items;
    int at = 0;

    while (at < job.item_count && strcmp(items[at].device, "GPU-1") != 0) {
        at++;
    }
    assert_int_equal(job.item_count - at, second ? 2 : 1);
    assert_string_equal(items[at].stack, first);
    if (second) {
        assert_string_equal(items[at + 1].stack, second);
        assert_string_equal(items[at + 1].device, "GPU-1");
    }
    job_release(&job);
}

static void test_stacks_of_a_device(void **state)
{
    (void)state;
    expect_stacks("{}", "cudnn9", NULL);
    expect_stacks("{'devices':['GPU-1']}", "cudnn9", NULL);
    expect_stacks("{'stacks':['cudnn9']}", "cudnn9", NULL);
    expect_stacks("{'stacks':['cudnn8']}", "cudnn8", NULL);
    expect_stacks("{'stacks':['cudnn8','cudnn9']}", "cudnn9", "cudnn8");
    expect_stacks("{'stacks':'all'}", "cudnn9", "cudnn8");
    expect_stacks("{'stacks':'all','devices':['GPU-1']}", "cudnn9", "cudnn8");
    expect_stacks("{'survey':true}", "cudnn9", "cudnn8");
    expect_stacks("{'survey':true,'stacks':['cudnn8']}", "cudnn8", NULL);
}

static void test_named_stacks_narrow_the_devices(void **state)
{
    struct job job = expand("{'stacks':['cudnn8']}");

    (void)state;
    assert_int_equal(job.item_count, 1);
    job_release(&job);
}

/* Workers of two stacks need not have the same workloads. */
static void test_a_stack_runs_what_its_worker_has(void **state)
{
    json_t *has = json_of("[{'workload':'wgrad'},{'no':'name'}]");
    const struct device_stack some[] = {
        { .id = "cpu:a",
          .backend = "cpu",
          .stack = "cpu",
          .host = "a",
          .is_default = true,
          .online = true },
        { .id = "cpu:a",
          .backend = "cpu",
          .stack = "old",
          .host = "a",
          .online = true,
          .catalogue = has },
    };
    struct problems problems = { .count = 0 };
    struct job job;
    json_t *all = json_of("{'survey':true}");
    json_t *lacking = json_of("{'workloads':['ctc'],'stacks':['old']}");

    (void)state;
    assert_int_equal(job_request_expand(all, catalogue, some, 2, &job, &problems),
                     ERR_OK);
    assert_int_equal(job.item_count, 6);
    for (int i = 4; i < 6; i++) {
        assert_string_equal(job.items[i].stack, "old");
        assert_string_equal(job.items[i].key.workload, "wgrad");
    }
    job_release(&job);
    assert_int_equal(job_request_expand(lacking, catalogue, some, 2, &job, &problems),
                     ERR_INVALID);
    assert_string_equal(problems.items[0].pointer, "/workloads/0");
    problems_release(&problems);
    json_decref(has);
    json_decref(all);
    json_decref(lacking);
}

/* An external workload: in a stack that is not the device's first, slow, and not for
 * surveys. */
static void test_a_workload_finds_its_stack(void **state)
{
    static const char entry[] =
        "[{'workload':'own','version':1,'backend':'cpu','title':'t','summary':'s',"
        " 'variants':[{'name':'plain','summary':'s','models':'m','algorithm':'a',"
        "              'claim':null,'subject':'model','control':false}],"
        " 'sizes':[{'name':'small','description':'d'}],'dtypes':['float32'],"
        " 'weight_sum':'w','loss':null,'no_control':'n','external':true,"
        " 'timeout_seconds':600,'survey':false}]";
    static const struct {
        const char *request;
        int items, own, timeout_ms; /* of the items of the workload "own" */
    } rows[] = {
        { "{}", 2, 0, 60000 },
        { "{'survey':true}", 2, 0, 60000 },
        { "{'stacks':['external','cpu']}", 2, 0, 60000 },
        { "{'workloads':['own']}", 1, 1, 600000 },
        { "{'workloads':['own','wgrad'],'devices':['cpu:a']}", 3, 1, 600000 },
        { "{'workloads':['own'],'stacks':['external']}", 1, 1, 600000 },
        { "{'workloads':['own'],'survey':true}", 1, 1, 600000 },
        { "{'workloads':['own'],'timeout_seconds':5}", 1, 1, 5000 },
    };
    json_t *has = json_of(entry), *wgrad = json_of("[{'workload':'wgrad'}]");
    struct device_stack some[] = {
        { .id = "cpu:a", .backend = "cpu", .stack = "cpu", .is_default = true },
        { .id = "cpu:a", .backend = "cpu", .stack = "external" },
    };
    struct err err;

    (void)state;
    assert_int_equal(catalogue_add(catalogue, has, &err), ERR_OK);
    some[0].host = some[1].host = "a";
    some[0].online = some[1].online = true;
    some[0].catalogue = wgrad;
    some[1].catalogue = has;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *request = json_of(rows[i].request);
        struct problems problems = { .count = 0 };
        struct job job;
        int own = 0;

        assert_int_equal(job_request_expand(request, catalogue, some, 2, &job, &problems),
                         ERR_OK);
        for (int k = 0; k < job.item_count; k++) {
            bool external = strcmp(job.items[k].key.workload, "own") == 0;

            own += external;
            assert_string_equal(job.items[k].stack, external ? "external" : "cpu");
            assert_int_equal(job.items[k].timeout_ms ? job.items[k].timeout_ms
                                                     : job.timeout_ms,
                             external ? rows[i].timeout_ms : 60000);
        }
        assert_int_equal(job.item_count, rows[i].items);
        assert_int_equal(own, rows[i].own);
        job_release(&job);
        json_decref(request);
    }
    json_decref(has);
    json_decref(wgrad);
}

static void test_backend_without_the_workload(void **state)
{
    (void)state;
    refuse("{'workloads':['ctc'],'devices':['GPU-1']}", PROBLEM_INVALID, "/workloads/0",
           "no implementation");
    refuse("{'workloads':['wgrad'],'sizes':['small'],'devices':['GPU-1']}",
           PROBLEM_INVALID, "", "nothing is left");
    refuse("{'devices':['cpu:a'],'stacks':['cudnn9']}", PROBLEM_INVALID, "", "no device");
}

static void test_no_device_online(void **state)
{
    json_t *request = json_of("{}");
    struct problems problems = { .count = 0 };
    struct job job;

    (void)state;
    assert_int_equal(
        job_request_expand(request, catalogue, devices + 1, 1, &job, &problems),
        ERR_BUSY);
    assert_int_equal(problems_kind(&problems), PROBLEM_NO_DEVICE);
    problems_release(&problems);
    json_decref(request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_named_device_may_be_offline),
        cmocka_unit_test(test_stacks_of_a_device),
        cmocka_unit_test(test_named_stacks_narrow_the_devices),
        cmocka_unit_test(test_a_stack_runs_what_its_worker_has),
        cmocka_unit_test(test_a_workload_finds_its_stack),
        cmocka_unit_test(test_backend_without_the_workload),
        cmocka_unit_test(test_no_device_online),
    };

    return cmocka_run_group_tests(tests, make_catalogue, free_catalogue);
}
