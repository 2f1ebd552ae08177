/* The environment of each backend whose cells the matrix shows: that of the first GPU,
 * and of the first stack of a device. */
#include "db/matrix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct device_stack devices[] = {
    { .id = "cpu:a", .backend = "cpu", .stack = "cpu", .is_default = true },
    { .id = "cpu:a", .backend = "cpu", .stack = "onednn" },
    { .id = "GPU-1", .backend = "cuda", .stack = "cudnn9", .is_default = true },
    { .id = "GPU-1", .backend = "cuda", .stack = "cudnn8" },
    { .id = "GPU-2", .backend = "cuda", .stack = "cudnn9", .is_default = true },
};

static void expect(int first, int count, const char *wanted, const char *device,
                   const char *stack)
{
    struct matrix_default subject;

    matrix_default_find(devices + first, count, wanted, &subject);
    assert_string_equal(subject.device, device);
    assert_string_equal(subject.stack, stack);
}

static void test_the_first_gpu_stands_for_all(void **state)
{
    (void)state;
    expect(0, 5, "", "GPU-1", "cudnn9");
    expect(2, 3, "", "GPU-1", "cudnn9");
    expect(0, 2, "", "cpu:a", "cpu");
    expect(0, 0, "", "", "");
}

static void test_a_device_with_its_first_stack(void **state)
{
    (void)state;
    expect(0, 5, "cpu:a", "cpu:a", "cpu");
    expect(0, 5, "GPU-2", "GPU-2", "cudnn9");
    expect(0, 5, "GPU-3", "", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_gpu_stands_for_all),
        cmocka_unit_test(test_a_device_with_its_first_stack),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
