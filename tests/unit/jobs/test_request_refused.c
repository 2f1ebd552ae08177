/* What is wrong with a request is said where it is, all of it at once. */
#include "tests/unit/jobs/expand_fixture.h"

static void test_unknown_names_get_the_nearest(void **state)
{
    (void)state;
    refuse("{'workloads':['wgrad','wgrat']}", PROBLEM_UNKNOWN_WORKLOAD, "/workloads/1",
           "'wgrad'?");
    refuse("{'variants':['orderd']}", PROBLEM_UNKNOWN_VARIANT, "/variants/0",
           "'ordered'?");
    refuse("{'workloads':['wgrad'],'variants':['patched']}", PROBLEM_UNKNOWN_VARIANT,
           "/variants/0", "none of the chosen");
    refuse("{'sizes':['smal']}", PROBLEM_UNKNOWN_SIZE, "/sizes/0", "'small'?");
    refuse("{'dtypes':['float16']}", PROBLEM_UNKNOWN_DTYPE, "/dtypes/0", "'float");
    refuse("{'devices':['cpu:c']}", PROBLEM_UNKNOWN_DEVICE, "/devices/0", "'cpu:");
    refuse("{'stacks':['cudnn9','cudnm8']}", PROBLEM_UNKNOWN_STACK, "/stacks/1",
           "'cudnn8'?");
    refuse("{'run':5}", PROBLEM_UNKNOWN_MEMBER, "/run", "'runs'?");
    refuse("{'a/b~c':5}", PROBLEM_UNKNOWN_MEMBER, "/a~1b~0c", "no member");
}

static void test_values_out_of_bounds(void **state)
{
    static const char *const values[] = { "0",    "-1",   "1.5", "'5'",
                                          "null", "true", "[]",  "100001" };

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char text[64];

        snprintf(text, sizeof text, "{'runs':%s}", values[i]);
        refuse(text, PROBLEM_INVALID, "/runs", "from 1 to 100000");
    }
    refuse("{'iterations':1001}", PROBLEM_INVALID, "/iterations", "1000");
    refuse("{'timeout_seconds':0}", PROBLEM_INVALID, "/timeout_seconds",
           "must be a number from 0.001 to 86400");
    refuse("{'timeout_seconds':'60'}", PROBLEM_INVALID, "/timeout_seconds",
           "must be a number from 0.001 to 86400");
    refuse("{'priority':'urgent'}", PROBLEM_INVALID, "/priority", "interactive");
    refuse("{'stacks':'cudnn9'}", PROBLEM_INVALID, "/stacks", "\"all\"");
    refuse("{'stacks':7}", PROBLEM_INVALID, "/stacks", "array");
    refuse("{'stacks':[]}", PROBLEM_INVALID, "/stacks", "leave the member out");
    refuse("{'survey':1}", PROBLEM_INVALID, "/survey", "true or false");
    refuse("{'note':7}", PROBLEM_INVALID, "/note", "text");
    refuse("{'seed':-1}", PROBLEM_INVALID, "/seed", "integer");
    refuse("{'seed':'18446744073709551616'}", PROBLEM_INVALID, "/seed", "integer");
    refuse("{'seed':1,'seeds':[2]}", PROBLEM_INVALID, "/seed", "not both");
    refuse("{'seeds':[]}", PROBLEM_INVALID, "/seeds", "1 to");
    refuse("{'workloads':'wgrad'}", PROBLEM_INVALID, "/workloads", "array");
    refuse("{'workloads':[]}", PROBLEM_INVALID, "/workloads", "leave the member out");
    refuse("{'workloads':['wgrad','wgrad']}", PROBLEM_INVALID, "/workloads/1", "twice");
    refuse("{'workloads':[7]}", PROBLEM_INVALID, "/workloads/0", "name");
    refuse("[]", PROBLEM_INVALID, "", "object");
}

static void test_all_problems_at_once(void **state)
{
    json_t *request = json_of("{'workloads':['x','y'],'devices':['z'],'runs':0}");
    struct problems problems = { .count = 0 };
    struct job job;

    (void)state;
    assert_int_equal(
        job_request_expand(request, catalogue, devices, DEVICES, &job, &problems),
        ERR_INVALID);
    assert_int_equal(problems.count, 4);
    assert_int_equal(problems_kind(&problems), PROBLEM_INVALID);
    problems_release(&problems);
    json_decref(request);
}

static void test_limits_of_the_whole(void **state)
{
    struct buf text = BUF_INIT;

    (void)state;
    refuse(
        "{'runs':100000,'iterations':1,'seeds':[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,"
        "17,18,19,20,21,22,23]}",
        PROBLEM_INVALID, "/runs", "10000000");
    buf_puts(&text,
             "{'devices':['cpu:a','cpu:b'],'workloads':['wgrad'],"
             "'dtypes':['float32','float64'],'sizes':['small','large'],'seeds':[0");
    for (int i = 1; i < 700; i++) {
        buf_printf(&text, ",%d", i);
    }
    buf_puts(&text, "]}");
    refuse(text.data, PROBLEM_INVALID, "", "11200 items");
    buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_names_get_the_nearest),
        cmocka_unit_test(test_values_out_of_bounds),
        cmocka_unit_test(test_all_problems_at_once),
        cmocka_unit_test(test_limits_of_the_whole),
    };

    return cmocka_run_group_tests(tests, make_catalogue, free_catalogue);
}
