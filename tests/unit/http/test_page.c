/* The cursor of a list survives its way through a URL; that of another list, or garbage,
 * is refused. */
#include "api/http/page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_every_length_survives(void **state)
{
    char key[CURSOR_KEY_SIZE] = "0";

    (void)state;
    for (size_t n = 1; n < CURSOR_KEY_SIZE; n++) {
        char cursor[CURSOR_SIZE];
        char back[CURSOR_KEY_SIZE] = "?";

        key[n] = '\0';
        cursor_encode('j', key, cursor);
        assert_int_equal(strspn(cursor,
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwx"
                                "yz0123456789-_"),
                         strlen(cursor));
        assert_int_equal(cursor_decode('j', cursor, back), 0);
        assert_string_equal(back, key);
        key[n] = (char)('0' + n);
    }
}

static void test_another_list_refuses_it(void **state)
{
    char cursor[CURSOR_SIZE];
    char back[CURSOR_KEY_SIZE];

    (void)state;
    cursor_encode('j', "01J0000000000000000000000", cursor);
    assert_int_equal(cursor_decode('r', cursor, back), -1);
}

static void test_garbage_is_refused(void **state)
{
    static const char *const bad[] = { "",      "a",  "!!!!", "ajo=",
                                       "01J00", "ag", "ajo",  "AAAA" };
    char long_one[300];
    char back[CURSOR_KEY_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(cursor_decode('j', bad[i], back), -1);
    }
    memset(long_one, 'a', sizeof long_one - 1);
    long_one[sizeof long_one - 1] = '\0';
    assert_int_equal(cursor_decode('j', long_one, back), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_length_survives),
        cmocka_unit_test(test_another_list_refuses_it),
        cmocka_unit_test(test_garbage_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
