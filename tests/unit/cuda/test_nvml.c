/* What NVML says about GPUs that are there, and are not well. */
#include "tests/unit/cuda/nvml_fixture.h"

static void test_one_gpu(void **state)
{
    json_t *answer = nvml_ask("one", "device", UUID);

    (void)state;
    nvml_check(answer, "versions",
               "{\"driver\":\"580.65.06\",\"nvml\":\"13.580.65.06\"}");
    nvml_check(answer, "attributes",
               "{\"gpu_uuid\":\"" UUID
               "\",\"gpu_name\":\"NVIDIA H100 80GB HBM3\","
               "\"serial\":\"1654223000000\",\"vbios\":\"96.00.89.00.01\","
               "\"pci_bus_id\":\"00000000:10:00.0\","
               "\"persistence_mode\":true,\"ecc_mode\":true,\"ecc_mode_pending\":true,"
               "\"mig_mode\":false,\"mig_mode_pending\":false,\"health\":{"
               "\"ecc_volatile_corrected\":0,\"ecc_volatile_uncorrected\":0,"
               "\"ecc_aggregate_corrected\":0,\"ecc_aggregate_uncorrected\":0,"
               "\"remapped_rows_correctable\":0,\"remapped_rows_uncorrectable\":0,"
               "\"row_remap_pending\":false,\"row_remap_failure\":false}}");
    nvml_check(
        answer, "telemetry",
        "{\"sm_clock_mhz\":1980,\"memory_clock_mhz\":2619,\"temperature_celsius\":31,"
        "\"power_watts\":118.34,\"throttle_reasons\":[\"idle\"],"
        "\"ecc_volatile_corrected\":0,\"ecc_volatile_uncorrected\":0,"
        "\"ecc_aggregate_corrected\":0,\"ecc_aggregate_uncorrected\":0,"
        "\"row_remap_pending\":false,\"row_remap_failure\":false}");
    json_decref(answer);
}

static void test_eight_gpus(void **state)
{
    json_t *list = nvml_ask("eight", "list", "-");
    json_t *third =
        nvml_ask("eight", "device", "GPU-00000002-1111-2222-3333-444455556602");
    json_t *gpus = json_object_get(list, "gpus");

    (void)state;
    assert_int_equal(json_array_size(gpus), 8);
    for (int i = 0; i < 8; i++) {
        char uuid[64];
        json_t *gpu = json_array_get(gpus, (size_t)i);

        snprintf(uuid, sizeof uuid, "GPU-%08x-1111-2222-3333-4444555566%02x", i, i);
        assert_string_equal(json_string_value(json_object_get(gpu, "uuid")), uuid);
        nvml_check(gpu, "cause", "\"\"");
    }
    assert_string_equal(nvml_text_of(third, "attributes", "serial"), "1654223000002");
    nvml_check(json_object_get(third, "telemetry"), "throttle_reasons",
               "[\"software_thermal\",\"hardware_thermal\",\"bit_12\"]");
    json_decref(list);
    json_decref(third);
}

static void test_mig(void **state)
{
    json_t *gpu = nvml_ask("mig", "device", UUID);
    json_t *off = nvml_ask("mig", "device", "GPU-00000001-1111-2222-3333-444455556601");
    /* As CUDA tells it: sixteen bytes, whatever they name. */
    json_t *mig = nvml_ask("mig", "device", "GPU-0b0b0b0b-1111-5222-9333-444455556666");
    json_t *attributes = json_object_get(gpu, "attributes");

    (void)state;
    nvml_check(attributes, "mig_mode", "true");
    nvml_check(attributes, "mig_instances",
               "[\"MIG-0a0a0a0a-1111-5222-9333-444455556666\","
               "\"MIG-0b0b0b0b-1111-5222-9333-444455556666\"]");
    attributes = json_object_get(off, "attributes");
    nvml_check(attributes, "mig_mode", "false");
    nvml_check(attributes, "mig_mode_pending", "true");
    assert_null(json_object_get(attributes, "mig_instances"));
    attributes = json_object_get(mig, "attributes");
    nvml_check(attributes, "gpu_uuid", "\"" UUID "\"");
    nvml_check(attributes, "mig_uuid", "\"MIG-0b0b0b0b-1111-5222-9333-444455556666\"");
    nvml_check(attributes, "mig_name", "\"NVIDIA H100 80GB HBM3 MIG 1g.10gb\"");
    nvml_check(attributes, "mig_gpu_instance", "2");
    nvml_check(attributes, "mig_compute_instance", "0");
    /* An instance has no sensors of its own. */
    nvml_check(json_object_get(mig, "telemetry"), "temperature_celsius", "31");
    json_decref(gpu);
    json_decref(off);
    json_decref(mig);
}

static void test_errors_of_memory(void **state)
{
    json_t *answer =
        nvml_ask("ecc", "device", "GPU-00000001-1111-2222-3333-444455556601");
    json_t *telemetry = json_object_get(answer, "telemetry");

    (void)state;
    nvml_check(json_object_get(answer, "attributes"), "health",
               "{\"ecc_volatile_corrected\":3,\"ecc_volatile_uncorrected\":1,"
               "\"ecc_aggregate_corrected\":4294967301,\"ecc_aggregate_uncorrected\":2,"
               "\"remapped_rows_correctable\":2,\"remapped_rows_uncorrectable\":1,"
               "\"row_remap_pending\":true,\"row_remap_failure\":false}");
    nvml_check(telemetry, "ecc_volatile_uncorrected", "1");
    nvml_check(telemetry, "ecc_aggregate_corrected", "4294967301");
    nvml_check(telemetry, "row_remap_pending", "true");
    json_decref(answer);
}

/* One GPU that is lost hides neither the others nor itself. */
static void test_lost_gpus(void **state)
{
    json_t *list = nvml_ask("lost", "list", "-");
    json_t *first = nvml_ask("lost", "device", UUID);
    json_t *third =
        nvml_ask("lost", "device", "GPU-00000002-1111-2222-3333-444455556602");

    (void)state;
    nvml_check(list, "gpus",
               "[{\"uuid\":\"" UUID
               "\",\"cause\":\"\"},{\"cause\":\"the GPU is lost (15)\"},"
               "{\"uuid\":\"GPU-00000002-1111-2222-3333-444455556602\","
               "\"cause\":\"the GPU is lost (15)\"}]");
    nvml_check(json_object_get(first, "telemetry"), "temperature_celsius", "31");
    assert_string_equal(nvml_text_of(third, "attributes", "serial"), "1654223000002");
    nvml_check(json_object_get(third, "attributes"), "health",
               "{\"cause\":\"the GPU is lost (15)\"}");
    nvml_check(third, "telemetry",
               "{\"throttle_reasons\":[\"idle\"],\"cause\":\"the GPU is lost (15)\"}");
    json_decref(list);
    json_decref(first);
    json_decref(third);
}

static void test_a_device_that_nvml_does_not_know(void **state)
{
    json_t *answer = nvml_ask("none", "device", UUID);

    (void)state;
    nvml_check(answer, "attributes",
               "{\"health\":{\"cause\":\"NVML lists no device with this UUID\"}}");
    nvml_check(answer, "telemetry", "{\"cause\":\"not found (6)\"}");
    json_decref(answer);
    answer = nvml_ask("one", "device", "unknown");
    nvml_check(answer, "telemetry", "{\"cause\":\"not found (6)\"}");
    json_decref(answer);
}

/* Unknown is absent: what the GPU lacks, what says "N/A", what is all ones. */
static void test_what_a_consumer_gpu_does_not_have(void **state)
{
    json_t *answer =
        nvml_ask("consumer", "device", "GPU-c0ffee00-1111-2222-3333-444455556666");

    (void)state;
    nvml_check(answer, "versions", "{\"nvml\":\"13.580.65.06\"}");
    nvml_check(answer, "attributes",
               "{\"gpu_uuid\":\"GPU-c0ffee00-1111-2222-3333-444455556666\","
               "\"gpu_name\":\"NVIDIA GeForce RTX 4090\",\"vbios\":\"95.02.3C.00.8C\","
               "\"pci_bus_id\":\"00000000:01:00.0\","
               "\"persistence_mode\":false,\"health\":{}}");
    nvml_check(
        answer, "telemetry",
        "{\"sm_clock_mhz\":2520,\"memory_clock_mhz\":10501,\"throttle_reasons\":[]}");
    json_decref(answer);
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
    };

    if (nvml_is_child(argc)) {
        return nvml_child(argv[1], argv[2]);
    }
    return cmocka_run_group_tests_name("nvml", tests, NULL, NULL);
}
