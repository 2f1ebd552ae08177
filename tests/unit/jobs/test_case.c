/* Siblings differ in their variant only: any other difference is that of another case. */
#include "daemon/jobs/case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct case_key a_case = {
    .workload = "conv_wgrad",
    .version = 2,
    .variant = "unordered",
    .size = "small",
    .dtype = "float32",
    .seed = 7,
};

static void test_variants_of_one_case_are_siblings(void **state)
{
    struct case_key other = a_case;

    (void)state;
    assert_true(case_siblings(&a_case, &other));
    other.variant[0] = 'x';
    assert_true(case_siblings(&a_case, &other));
}

static void test_each_other_difference_parts_them(void **state)
{
    struct case_key others[] = { a_case, a_case, a_case, a_case, a_case, a_case };

    (void)state;
    others[0].workload[0] = 'x';
    others[1].version++;
    others[2].size[0] = 'x';
    others[3].dtype[0] = 'x';
    others[4].seed++;
    others[5].seed += UINT64_C(1) << 32;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_false(case_siblings(&a_case, &others[i]));
        assert_false(case_siblings(&others[i], &a_case));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variants_of_one_case_are_siblings),
        cmocka_unit_test(test_each_other_difference_parts_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
