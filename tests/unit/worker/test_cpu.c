/* Processors of one class have one name, however the kernel dresses it up. */
#include "workloads/worker/cpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "workloads/workload.h"

static void test_cpu_model_class(void **state)
{
    static const char *const names[][2] = {
        { " Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz\n",
          "Intel Xeon Platinum 8370C" },
        { " AMD EPYC 7763 64-Core Processor                \n",
          "AMD EPYC 7763 64-Core Processor" },
        { " Intel(R) Core(TM) i7-8650U CPU @ 1.90GHz", "Intel Core i7-8650U" },
        { "", "" },
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(names); i++) {
        char model[CPU_TEXT_SIZE];
        cpu_model_class(names[i][0], model);
        assert_string_equal(model, names[i][1]);
    }
}

static void test_this_machine(void **state)
{
    char model[CPU_TEXT_SIZE];

    (void)state;
    cpu_model(model);
    assert_true(strlen(model) > 0);
    assert_true(strlen(cpu_vector_isa()) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_model_class),
        cmocka_unit_test(test_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
