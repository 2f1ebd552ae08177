/* Who uses a GPU besides us, from an imitation of NVML. */
#include "tests/unit/cuda/nvml_fixture.h"

static void check_devices(const json_t *answer, const char *const *expected, size_t count)
{
    const json_t *devices = json_object_get(answer, "devices");

    assert_int_equal(json_array_size(devices), count);
    for (size_t i = 0; i < count; i++) {
        json_t *wanted = json_loads(expected[i], 0, NULL);
        json_t *got = json_array_get(devices, i);

        assert_non_null(wanted);
        json_object_del(got, "id");
        if (!json_equal(got, wanted)) {
            fail_msg("%zu is %s\nnot %s", i, json_dumps(got, 0), expected[i]);
        }
        json_decref(wanted);
    }
}

static const char *const told[] = {
    "{\"foreign\":[],\"cause\":null}",
    "{\"foreign\":[],\"cause\":null}",
    "{\"foreign\":[\"5000001 ?\",\"5000002 ?\"],\"cause\":null}",
    ("{\"foreign\":[\"5000001 ?\",\"5000002 ?\",\"5000003 ?\",\"5000004 ?\","
     "\"5000005 ?\",\"5000006 ?\",\"5000007 ?\",\"5000008 ?\",\"and 12 more\"],"
     "\"cause\":null}"),
    "{\"cause\":\"not supported (3)\"}",
    "{\"cause\":\"no permission (4)\"}",
    "{\"cause\":\"the GPU is lost (15)\"}",
};

static void test_foreign_processes_are_told(void **state)
{
    json_t *answer = nvml_ask("processes", "processes", "-");

    (void)state;
    check_devices(answer, told, sizeof told / sizeof told[0]);
    nvml_check(answer, "cause", "null");
    json_decref(answer);
}

/* Other names, and another layout. */
static void test_an_old_driver_tells_them_too(void **state)
{
    char libraries[PATH_MAX];
    json_t *answer;

    (void)state;
    snprintf(libraries, sizeof libraries, "%s/tests/nvml-old", nvml_build());
    answer = nvml_ask_of(libraries, "processes", "processes", "-");
    check_devices(answer, told, sizeof told / sizeof told[0]);
    json_decref(answer);
}

static void test_an_instance_has_its_own(void **state)
{
    static const char *const own[] = { "{\"foreign\":[\"5000001 ?\"],\"cause\":null}" };
    json_t *answer = nvml_ask("processes_mig", "processes", "-");

    (void)state;
    check_devices(answer, own, 1);
    json_decref(answer);
}

static void test_without_a_gpu_there_is_nobody(void **state)
{
    json_t *answer = nvml_ask("none", "processes", "-");

    (void)state;
    check_devices(answer, NULL, 0);
    json_decref(answer);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_foreign_processes_are_told),
        cmocka_unit_test(test_an_old_driver_tells_them_too),
        cmocka_unit_test(test_an_instance_has_its_own),
        cmocka_unit_test(test_without_a_gpu_there_is_nobody),
    };

    if (nvml_is_child(argc)) {
        return nvml_child(argv[1], argv[2]);
    }
    return cmocka_run_group_tests_name("nvml_processes", tests, NULL, NULL);
}
