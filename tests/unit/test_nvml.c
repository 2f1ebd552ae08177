/* What NVML says about GPUs, from a fake libnvidia-ml.so.1 that replays inventories
 * (tests/fixtures/nvml/fake_nvml.h).  One process for each, since a process loads NVML
 * once: the test starts itself again, and reads what that prints. */
#include "cuda/nvml/device_facts.h"

#include <dlfcn.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

enum { LONG_MS = 60000, SHORT_MS = 50, STATUS = 7 };

#define UUID "GPU-00000000-1111-2222-3333-444455556600"

static struct emit line;
static char program[PATH_MAX];

/* The other side: prints one object. */

static void emit_list(void)
{
    static struct nvml_inventory inventory;
    char cause[NVML_CAUSE_SIZE] = "";

    if (!nvml_inventory_read(&inventory, LONG_MS, cause)) {
        emit_string(&line, "cause", cause);
        return;
    }
    fact_emit(&line, "present", inventory.present);
    emit_array(&line, "gpus");
    for (int i = 0; i < inventory.gpu_count; i++) {
        emit_object(&line, NULL);
        fact_emit_text(&line, "uuid", &inventory.gpus[i].uuid);
        emit_string(&line, "cause", inventory.gpus[i].cause);
        emit_object_end(&line);
    }
    emit_array_end(&line);
}

static void emit_device(const char *uuid)
{
    emit_object(&line, "versions");
    nvml_emit_versions(&line);
    emit_object_end(&line);
    emit_object(&line, "attributes");
    nvml_emit_device_attributes(&line, uuid);
    emit_object_end(&line);
    emit_object(&line, "telemetry");
    nvml_emit_telemetry(&line, uuid);
    emit_object_end(&line);
}

static void emit_hung(const char *uuid)
{
    static struct nvml_inventory inventory;
    struct nvml_telemetry telemetry;
    char cause[NVML_CAUSE_SIZE] = "";

    emit_object(&line, "telemetry");
    nvml_telemetry_read(uuid, SHORT_MS, &telemetry);
    nvml_emit_sample(&line, &telemetry);
    emit_object_end(&line);
    /* Not waited for again: this would take a day. */
    emit_bool(&line, "answered", nvml_inventory_read(&inventory, 86400000, cause));
    emit_string(&line, "cause", cause);
}

static int be_child(const char *mode, const char *uuid)
{
    alarm(120); /* a test that waits for ever fails */
    emit_init(&line, STDOUT_FILENO);
    emit_begin(&line);
    if (strcmp(mode, "list") == 0) {
        emit_list();
    } else if (strcmp(mode, "hung") == 0) {
        emit_hung(uuid);
    } else {
        emit_device(uuid);
    }
    return emit_end(&line) == 0 ? STATUS : EXIT_FAILURE;
}

/* This side. */

static const char *build(void)
{
    const char *folder = getenv("REPROD_BUILD");

    return folder ? folder : "build";
}

/* What the program prints in MODE with the NVML in folder LIBRARIES. */
static json_t *ask_of(const char *libraries, const char *inventory, const char *mode,
                      const char *uuid)
{
    char command[3 * PATH_MAX];
    json_error_t error;
    json_t *answer;
    FILE *pipe;

    snprintf(command, sizeof command,
             "LD_LIBRARY_PATH=%s REPROD_FAKE_NVML=tests/fixtures/nvml/%s.txt '%s' %s %s",
             libraries, inventory, program, mode, uuid);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    answer = json_loadf(pipe, JSON_REJECT_DUPLICATES, &error);
    if (!answer) {
        fail_msg("%s: %s", command, error.text);
    }
    assert_int_equal(WEXITSTATUS(pclose(pipe)), STATUS);
    return answer;
}

static json_t *ask(const char *inventory, const char *mode, const char *uuid)
{
    char libraries[PATH_MAX];

    snprintf(libraries, sizeof libraries, "%s/tests/nvml", build());
    return ask_of(libraries, inventory, mode, uuid);
}

static void check(const json_t *answer, const char *member, const char *expected)
{
    json_t *wanted = json_loads(expected, JSON_DECODE_ANY, NULL);
    json_t *got = json_object_get(answer, member);

    assert_non_null(wanted);
    if (!json_equal(got, wanted)) {
        fail_msg("%s is %s\nnot %s", member, json_dumps(got, JSON_ENCODE_ANY), expected);
    }
    json_decref(wanted);
}

static const char *text_of(const json_t *answer, const char *object, const char *member)
{
    const char *text =
        json_string_value(json_object_get(json_object_get(answer, object), member));

    return text ? text : "";
}

static void test_one_gpu(void **state)
{
    json_t *answer = ask("one", "device", UUID);

    (void)state;
    check(
        answer, "versions",
        "{\"driver\":\"580.65.06\",\"nvml\":\"13.580.65.06\",\"cuda_driver\":\"13.0\"}");
    check(answer, "attributes",
          "{\"gpu_uuid\":\"" UUID
          "\",\"gpu_name\":\"NVIDIA H100 80GB HBM3\","
          "\"serial\":\"1654223000000\",\"vbios\":\"96.00.89.00.01\","
          "\"nvml_pci_bus_id\":\"00000000:10:00.0\",\"nvml_compute_capability\":\"9.0\","
          "\"persistence_mode\":true,\"ecc_mode\":true,\"ecc_mode_pending\":true,"
          "\"mig_mode\":false,\"mig_mode_pending\":false,\"health\":{"
          "\"ecc_volatile_corrected\":0,\"ecc_volatile_uncorrected\":0,"
          "\"ecc_aggregate_corrected\":0,\"ecc_aggregate_uncorrected\":0,"
          "\"remapped_rows_correctable\":0,\"remapped_rows_uncorrectable\":0,"
          "\"row_remap_pending\":false,\"row_remap_failure\":false}}");
    check(answer, "telemetry",
          "{\"sm_clock_mhz\":1980,\"memory_clock_mhz\":2619,\"temperature_celsius\":31,"
          "\"power_watts\":118.34,\"throttle_reasons\":[\"idle\"],"
          "\"ecc_volatile_corrected\":0,\"ecc_volatile_uncorrected\":0,"
          "\"ecc_aggregate_corrected\":0,\"ecc_aggregate_uncorrected\":0,"
          "\"row_remap_pending\":false,\"row_remap_failure\":false}");
    json_decref(answer);
}

static void test_eight_gpus(void **state)
{
    json_t *list = ask("eight", "list", "-");
    json_t *third = ask("eight", "device", "GPU-00000002-1111-2222-3333-444455556602");
    json_t *gpus = json_object_get(list, "gpus");

    (void)state;
    check(list, "present", "8");
    assert_int_equal(json_array_size(gpus), 8);
    for (int i = 0; i < 8; i++) {
        char uuid[64];
        json_t *gpu = json_array_get(gpus, (size_t)i);

        snprintf(uuid, sizeof uuid, "GPU-%08x-1111-2222-3333-4444555566%02x", i, i);
        assert_string_equal(json_string_value(json_object_get(gpu, "uuid")), uuid);
        assert_string_equal(json_string_value(json_object_get(gpu, "cause")), "");
    }
    assert_string_equal(text_of(third, "attributes", "serial"), "1654223000002");
    check(json_object_get(third, "telemetry"), "throttle_reasons",
          "[\"software_thermal\",\"hardware_thermal\",\"bit_12\"]");
    json_decref(list);
    json_decref(third);
}

static void test_mig(void **state)
{
    json_t *gpu = ask("mig", "device", UUID);
    json_t *off = ask("mig", "device", "GPU-00000001-1111-2222-3333-444455556601");
    /* As CUDA tells it: sixteen bytes, whatever they name. */
    json_t *mig = ask("mig", "device", "GPU-0b0b0b0b-1111-5222-9333-444455556666");
    json_t *attributes = json_object_get(gpu, "attributes");

    (void)state;
    check(attributes, "mig_mode", "true");
    check(attributes, "mig_instances",
          "[\"MIG-0a0a0a0a-1111-5222-9333-444455556666\","
          "\"MIG-0b0b0b0b-1111-5222-9333-444455556666\"]");
    attributes = json_object_get(off, "attributes");
    check(attributes, "mig_mode", "false");
    check(attributes, "mig_mode_pending", "true");
    assert_null(json_object_get(attributes, "mig_instances"));
    attributes = json_object_get(mig, "attributes");
    check(attributes, "gpu_uuid", "\"" UUID "\"");
    check(attributes, "mig_uuid", "\"MIG-0b0b0b0b-1111-5222-9333-444455556666\"");
    check(attributes, "mig_name", "\"NVIDIA H100 80GB HBM3 MIG 1g.10gb\"");
    check(attributes, "mig_gpu_instance", "2");
    check(attributes, "mig_compute_instance", "0");
    /* An instance has no sensors of its own. */
    check(json_object_get(mig, "telemetry"), "temperature_celsius", "31");
    json_decref(gpu);
    json_decref(off);
    json_decref(mig);
}

static void test_errors_of_memory(void **state)
{
    json_t *answer = ask("ecc", "device", "GPU-00000001-1111-2222-3333-444455556601");
    json_t *telemetry = json_object_get(answer, "telemetry");

    (void)state;
    check(json_object_get(answer, "attributes"), "health",
          "{\"ecc_volatile_corrected\":3,\"ecc_volatile_uncorrected\":1,"
          "\"ecc_aggregate_corrected\":4294967301,\"ecc_aggregate_uncorrected\":2,"
          "\"remapped_rows_correctable\":2,\"remapped_rows_uncorrectable\":1,"
          "\"row_remap_pending\":true,\"row_remap_failure\":false}");
    check(telemetry, "ecc_volatile_uncorrected", "1");
    check(telemetry, "ecc_aggregate_corrected", "4294967301");
    check(telemetry, "row_remap_pending", "true");
    json_decref(answer);
}

/* One GPU that is lost hides neither the others nor itself. */
static void test_lost_gpus(void **state)
{
    json_t *list = ask("lost", "list", "-");
    json_t *first = ask("lost", "device", UUID);
    json_t *third = ask("lost", "device", "GPU-00000002-1111-2222-3333-444455556602");

    (void)state;
    check(list, "gpus",
          "[{\"uuid\":\"" UUID
          "\",\"cause\":\"\"},{\"cause\":\"the GPU is lost (15)\"},"
          "{\"uuid\":\"GPU-00000002-1111-2222-3333-444455556602\","
          "\"cause\":\"the GPU is lost (15)\"}]");
    check(json_object_get(first, "telemetry"), "temperature_celsius", "31");
    assert_string_equal(text_of(third, "attributes", "serial"), "1654223000002");
    check(json_object_get(third, "attributes"), "health",
          "{\"cause\":\"the GPU is lost (15)\"}");
    check(third, "telemetry",
          "{\"throttle_reasons\":[\"idle\"],\"cause\":\"the GPU is lost (15)\"}");
    json_decref(list);
    json_decref(first);
    json_decref(third);
}

static void test_a_device_that_nvml_does_not_know(void **state)
{
    json_t *answer = ask("none", "device", UUID);

    (void)state;
    check(answer, "attributes",
          "{\"health\":{\"cause\":\"NVML lists no device with this UUID\"}}");
    check(answer, "telemetry", "{\"cause\":\"not found (6)\"}");
    json_decref(answer);
    answer = ask("one", "device", "unknown");
    check(answer, "telemetry", "{\"cause\":\"not found (6)\"}");
    json_decref(answer);
}

/* Unknown is absent: what the GPU lacks, what says "N/A", what is all ones. */
static void test_what_a_consumer_gpu_does_not_have(void **state)
{
    json_t *answer =
        ask("consumer", "device", "GPU-c0ffee00-1111-2222-3333-444455556666");

    (void)state;
    check(answer, "attributes",
          "{\"gpu_uuid\":\"GPU-c0ffee00-1111-2222-3333-444455556666\","
          "\"gpu_name\":\"NVIDIA GeForce RTX 4090\",\"vbios\":\"95.02.3C.00.8C\","
          "\"nvml_pci_bus_id\":\"00000000:01:00.0\",\"nvml_compute_capability\":\"8.9\","
          "\"persistence_mode\":false,\"health\":{}}");
    check(answer, "telemetry",
          "{\"sm_clock_mhz\":2520,\"memory_clock_mhz\":10501,\"throttle_reasons\":[]}");
    json_decref(answer);
}

static void test_an_old_driver_without_many_functions(void **state)
{
    char libraries[PATH_MAX];
    json_t *answer;

    (void)state;
    snprintf(libraries, sizeof libraries, "%s/tests/nvml-old", build());
    answer = ask_of(libraries, "one", "device", UUID);
    check(answer, "versions", "{\"driver\":\"580.65.06\",\"nvml\":\"13.580.65.06\"}");
    check(answer, "attributes",
          "{\"gpu_uuid\":\"" UUID
          "\",\"gpu_name\":\"NVIDIA H100 80GB HBM3\","
          "\"serial\":\"1654223000000\",\"vbios\":\"96.00.89.00.01\","
          "\"persistence_mode\":true,\"ecc_mode\":true,\"ecc_mode_pending\":true,"
          "\"health\":{"
          "\"ecc_volatile_corrected\":0,\"ecc_volatile_uncorrected\":0,"
          "\"ecc_aggregate_corrected\":0,\"ecc_aggregate_uncorrected\":0}}");
    check(json_object_get(answer, "telemetry"), "throttle_reasons", "[\"idle\"]");
    json_decref(answer);
}

/* NVML that cannot be used at all: the reason everywhere, and nothing else. */
static void check_unusable(json_t *answer, const char *cause)
{
    const char *health = json_string_value(json_object_get(
        json_object_get(json_object_get(answer, "attributes"), "health"), "cause"));

    check(answer, "versions", "{}");
    assert_non_null(health);
    assert_non_null(strstr(health, cause));
    assert_int_equal(json_object_size(json_object_get(answer, "attributes")), 1);
    assert_string_equal(text_of(answer, "telemetry", "cause"), health);
    assert_int_equal(json_object_size(json_object_get(answer, "telemetry")), 1);
    json_decref(answer);
}

static void test_a_mismatch_of_driver_and_library(void **state)
{
    (void)state;
    check_unusable(
        ask("mismatch", "device", UUID),
        "nvmlInit_v2: the driver and its libraries have different versions (18)");
}

static void test_no_library(void **state)
{
    (void)state;
    if (dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
        skip(); /* this machine has a driver */
    }
    check_unusable(ask_of("/nowhere", "one", "device", UUID), "cannot be loaded");
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
    check_unusable(ask_of(folder, "one", "device", UUID), "cannot be loaded");
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
        json_t *answer = ask(inventories[i], "hung", UUID);

        check(answer, "telemetry", "{\"cause\":\"NVML did not answer within 50 ms\"}");
        check(answer, "answered", "false");
        check(answer, "cause", "\"NVML did not answer within 50 ms\"");
        json_decref(answer);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_gpu),
        cmocka_unit_test(test_eight_gpus),
        cmocka_unit_test(test_mig),
        cmocka_unit_test(test_errors_of_memory),
        cmocka_unit_test(test_lost_gpus),
        cmocka_unit_test(test_a_device_that_nvml_does_not_know),
        cmocka_unit_test(test_what_a_consumer_gpu_does_not_have),
        cmocka_unit_test(test_an_old_driver_without_many_functions),
        cmocka_unit_test(test_a_mismatch_of_driver_and_library),
        cmocka_unit_test(test_no_library),
        cmocka_unit_test(test_a_library_that_is_none),
        cmocka_unit_test(test_a_driver_that_hangs),
    };
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);

    if (argc == 3) {
        return be_child(argv[1], argv[2]);
    }
    return length > 0 ? cmocka_run_group_tests_name("nvml", tests, NULL, NULL)
                      : EXIT_FAILURE;
}
