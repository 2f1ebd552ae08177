/* What a process is not shown of the GPUs and slices that NVML lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/nvml/visible.h"

static struct nvml_inventory inventory;

static struct fact_text text(const char *value)
{
    struct fact_text fact = { .known = true };

    snprintf(fact.value, sizeof fact.value, "%s", value);
    return fact;
}

static struct nvml_gpu *add_gpu(const char *uuid, int mig_mode)
{
    struct nvml_gpu *gpu = &inventory.gpus[inventory.gpu_count++];

    memset(gpu, 0, sizeof *gpu);
    gpu->uuid = text(uuid);
    gpu->mig_mode = (struct fact){ mig_mode >= 0, mig_mode };
    return gpu;
}

static void add_slice(struct nvml_gpu *gpu, const char *uuid)
{
    gpu->migs[gpu->mig_count++].uuid = text(uuid);
}

/* Two slices, a GPU without MIG, one of years ago, and one whose slices nobody made. */
static int setup(void **state)
{
    struct nvml_gpu *gpu;

    (void)state;
    memset(&inventory, 0, sizeof inventory);
    gpu = add_gpu("GPU-0", 1);
    add_slice(gpu, "MIG-a");
    add_slice(gpu, "MIG-b");
    add_gpu("GPU-1", 0);
    add_gpu("GPU-2", -1);
    add_gpu("GPU-3", 1);
    return 0;
}

static void check_list(const char *visible, const char *expected)
{
    const char *ids[VISIBLE_MAX];
    int count = visible_list(&inventory, visible, ids);

    for (int i = 0; i < count; i++) {
        size_t length = strlen(ids[i]);

        assert_memory_equal(expected, ids[i], length);
        assert_int_equal(expected[length], ' ');
        expected += length + 1;
    }
    assert_string_equal(expected, "");
}

static void test_all_that_there_is(void **state)
{
    (void)state;
    check_list(NULL, "MIG-a MIG-b GPU-1 GPU-2 ");
    assert_true(visible_is_partial(&inventory));
    assert_string_equal(visible_without_slice(&inventory), "GPU-3");
}

static void test_what_is_unknown_is_left_out(void **state)
{
    (void)state;
    inventory.gpus[0].migs[0].uuid.known = false;
    inventory.gpus[1].uuid.known = false;
    inventory.gpus[3].uuid.known = false;
    check_list(NULL, "MIG-b GPU-2 ");
    assert_null(visible_without_slice(&inventory));
}

static void test_a_host_without_mig(void **state)
{
    (void)state;
    inventory.gpu_count = 0;
    add_gpu("GPU-1", 0);
    add_gpu("GPU-2", -1);
    assert_false(visible_is_partial(&inventory));
    assert_null(visible_without_slice(&inventory));
    inventory.gpu_count = 0;
    assert_false(visible_is_partial(&inventory));
    check_list(NULL, "");
}

/* Never more than was named, and what only CUDA can read names nothing here. */
static void test_what_is_allowed(void **state)
{
    (void)state;
    check_list("", "");
    check_list("MIG-b", "MIG-b ");
    check_list("GPU-2,mig-A", "MIG-a GPU-2 ");
    check_list("0,1", "");
    check_list("MIG-", "");
    check_list("GPU-0", "");
    check_list("MIG-bb,MIG-b-,GPU-1 ", "");
    check_list(",,GPU-1,", "GPU-1 ");
    check_list("-1", "");
    check_list("all", "");
}

static void test_ids_of_slices(void **state)
{
    (void)state;
    assert_true(visible_is_slice("MIG-a"));
    assert_false(visible_is_slice("GPU-a"));
    assert_false(visible_is_slice("MI"));
}

static void test_a_full_host_fits(void **state)
{
    const char *ids[VISIBLE_MAX];

    (void)state;
    inventory.gpu_count = 0;
    for (int i = 0; i < NVML_GPUS_MAX; i++) {
        struct nvml_gpu *gpu = add_gpu("GPU-x", 1);

        while (gpu->mig_count < NVML_MIGS_MAX) {
            add_slice(gpu, "MIG-y");
        }
    }
    assert_int_equal(visible_list(&inventory, NULL, ids), VISIBLE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_all_that_there_is, setup),
        cmocka_unit_test_setup(test_what_is_unknown_is_left_out, setup),
        cmocka_unit_test_setup(test_a_host_without_mig, setup),
        cmocka_unit_test_setup(test_what_is_allowed, setup),
        cmocka_unit_test(test_ids_of_slices),
        cmocka_unit_test_setup(test_a_full_host_fits, setup),
    };

    return cmocka_run_group_tests_name("nvml_visible", tests, NULL, NULL);
}
