/* An NVML that is old, broken, absent, or never answers. */
#include "tests/unit/cuda/nvml_fixture.h"

#include <dlfcn.h>

static void test_an_old_driver_without_many_functions(void **state)
{
    char libraries[PATH_MAX];
    json_t *answer;

    (void)state;
    snprintf(libraries, sizeof libraries, "%s/tests/nvml-old", nvml_build());
    answer = nvml_ask_of(libraries, "one", "device", UUID);
    nvml_check(answer, "versions",
               "{\"driver\":\"580.65.06\",\"nvml\":\"13.580.65.06\"}");
    nvml_check(answer, "attributes",
               "{\"gpu_uuid\":\"" UUID
               "\",\"gpu_name\":\"NVIDIA H100 80GB HBM3\","
               "\"serial\":\"1654223000000\",\"vbios\":\"96.00.89.00.01\","
               "\"persistence_mode\":true,\"ecc_mode\":true,\"ecc_mode_pending\":true,"
               "\"health\":{"
               "\"ecc_volatile_corrected\":0,\"ecc_volatile_uncorrected\":0,"
               "\"ecc_aggregate_corrected\":0,\"ecc_aggregate_uncorrected\":0}}");
    nvml_check(json_object_get(answer, "telemetry"), "throttle_reasons", "[\"idle\"]");
    json_decref(answer);
}

/* NVML that cannot be used at all: the reason everywhere, and nothing else. */
static void check_unusable(json_t *answer, const char *cause)
{
    const char *health = json_string_value(json_object_get(
        json_object_get(json_object_get(answer, "attributes"), "health"), "cause"));

    nvml_check(answer, "versions", "{}");
    assert_non_null(health);
    assert_non_null(strstr(health, cause));
    assert_int_equal(json_object_size(json_object_get(answer, "attributes")), 1);
    assert_string_equal(nvml_text_of(answer, "telemetry", "cause"), health);
    assert_int_equal(json_object_size(json_object_get(answer, "telemetry")), 1);
    json_decref(answer);
}

static void test_a_mismatch_of_driver_and_library(void **state)
{
    (void)state;
    check_unusable(
        nvml_ask("mismatch", "device", UUID),
        "nvmlInit_v2: the driver and its libraries have different versions (18)");
}

static void test_no_library(void **state)
{
    (void)state;
    if (dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
        print_message("skipped: this machine has a driver\n");
        skip();
    }
    check_unusable(nvml_ask_of("/nowhere", "one", "device", UUID), "cannot be loaded");
}

static void test_a_library_that_is_none(void **state)
{
    char folder[] = "/tmp/reprod-test-XXXXXX";
    char path[64];
    FILE *file;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/libnvidia-ml.so.1", folder);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("cut off", file);
    fclose(file);
    check_unusable(nvml_ask_of(folder, "one", "device", UUID), "cannot be loaded");
    remove(path);
    rmdir(folder);
}

/* The process goes on, does not wait twice, and ends with its own status although the
 * library's destructor waits for the call that hangs. */
static void test_a_driver_that_hangs(void **state)
{
    static const char *const inventories[] = { "hang_init", "hang_ecc" };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        json_t *answer = nvml_ask(inventories[i], "hung", UUID);

        nvml_check(answer, "telemetry",
                   "{\"cause\":\"NVML did not answer within 50 ms\"}");
        nvml_check(answer, "answered", "false");
        nvml_check(answer, "cause", "\"NVML did not answer within 50 ms\"");
        json_decref(answer);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_old_driver_without_many_functions),
        cmocka_unit_test(test_a_mismatch_of_driver_and_library),
        cmocka_unit_test(test_no_library),
        cmocka_unit_test(test_a_library_that_is_none),
        cmocka_unit_test(test_a_driver_that_hangs),
    };

    if (nvml_is_child(argc)) {
        return nvml_child(argv[1], argv[2]);
    }
    return cmocka_run_group_tests_name("nvml_unusable", tests, NULL, NULL);
}
