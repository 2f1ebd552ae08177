/* References: which kinds, addresses and states are right. */
#include "daemon/base/reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_kinds(void **state)
{
    (void)state;
    assert_true(reference_is_kind("issue") && reference_is_kind("source"));
    assert_false(reference_is_kind(NULL) || reference_is_kind("") ||
                 reference_is_kind("Issue") || reference_is_kind("issues"));
}

static void test_addresses(void **state)
{
    static const char *const wrong[] = {
        "",
        "https://",
        "http://a.b",
        "HTTPS://a.b",
        "javascript:x",
        "https://a b",
        "https://a\"b",
        "https://a\n",
        "https://<script>",
        "https://\xc3\xa4",
    };

    (void)state;
    assert_true(reference_is_url("https://a.b/c_(d)?e=f&g#h-i%20"));
    assert_false(reference_is_url(NULL));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(reference_is_url(wrong[i]));
    }
}

static void test_states(void **state)
{
    static const char *const right[] = { "open 2020-06", "merged 2023-12",
                                         "open 2020-06, closed 2021-01, merged 2023-07" };
    static const char *const wrong[] = {
        "",
        "open",
        "open ",
        "done 2020-06",
        "open 2020-6",
        "open 2020-00",
        "open 2020-13",
        "open 2020-061",
        "open 12020-06",
        "open 2020-06,",
        "open 2020-06, ",
        "open 2020-06 merged 2023-07",
        "merged 2023-07, open 2020-06",
        "open 2020-06, closed 2020-06",
        "Open 2020-06",
    };

    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        assert_true(reference_is_state(right[i]));
    }
    assert_false(reference_is_state(NULL));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (reference_is_state(wrong[i])) {
            fail_msg("'%s' passed", wrong[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_states),
    };

    return cmocka_run_group_tests_name("references", tests, NULL, NULL);
}
