/* External workloads: what is configured. */
#include "tests/unit/config/external_fixture.h"

static void test_a_complete_workload_stays_as_it_is(void **state)
{
    json_t *workload = workload_with("title", NULL);
    json_t *copy = json_deep_copy(workload);
    struct err err;

    (void)state;
    assert_string_equal(json_string_value(json_object_get(workload, "title")), "own");
    assert_string_equal(json_string_value(json_object_get(workload, "directory")),
                        folder);
    assert_true(json_is_false(json_object_get(workload, "survey")));
    assert_int_equal(external_complete(copy, "here", NULL, &err), ERR_OK);
    assert_true(json_equal(copy, workload));
    json_object_set_new(copy, "directory", json_string("relative"));
    assert_int_equal(external_complete(copy, "here", NULL, &err), ERR_INVALID);
    assert_string_equal(err.message, "here/directory: must be an absolute path");
    json_decref(copy);
    json_decref(workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_complete_workload_stays_as_it_is),
    };

    return cmocka_run_group_tests_name("config external", tests, make_folder,
                                       remove_folder);
}
