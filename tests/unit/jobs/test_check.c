/* The words of checks, as they are stored and reported. */
#include "daemon/jobs/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_words_come_back(void **state)
{
    static const char *const others[] = { "", "Passed", "none", "known " };

    (void)state;
    for (int i = CHECK_ASKED; i < CHECK_STATES; i++) {
        assert_int_equal(check_state_parse(check_state_name((enum check_state)i)), i);
    }
    assert_int_equal(check_state_parse(NULL), CHECK_NONE);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(check_state_parse(others[i]), CHECK_NONE); /* never: passed */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_come_back),
    };

    return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
