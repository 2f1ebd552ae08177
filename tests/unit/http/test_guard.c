/* Which Host and Origin a request may name: a page of another origin cannot use the
 * service. */
#include "api/http/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_loopback_names(void **state)
{
    static const char *const good[] = { "localhost",         "localhost:7357",
                                        "LocalHost:1",       "127.0.0.1",
                                        "127.0.0.1:7357",    "[::1]",
                                        "[::1]:65535",       "127.0.0.2",
                                        "127.255.255.254:80" };
    static const char *const bad[] = { "evil.example",
                                       "localhost.evil.example",
                                       "127.0.0.1.nip.io",
                                       "localhost:",
                                       "localhost:7357x",
                                       "localhost:123456",
                                       "localhost@evil",
                                       "",
                                       "127.0.0.256",
                                       "::1",
                                       "127.1",
                                       "128.0.0.1",
                                       "12.7.0.0.1",
                                       "127.0.0.1.",
                                       "127.0.0.1111111",
                                       "1.127.0.0",
                                       "[::1]evil",
                                       "localhost:80:80" };

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(guard_host_is_loopback(good[i]));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(guard_host_is_loopback(bad[i]));
    }
}

static void test_only_the_own_origin(void **state)
{
    (void)state;
    assert_true(guard_origin_is_own("http://localhost:7357", "localhost:7357"));
    assert_false(guard_origin_is_own("http://localhost:3000", "localhost:7357"));
    assert_false(guard_origin_is_own("https://localhost:7357", "localhost:7357"));
    assert_false(guard_origin_is_own("http://evil.example", "localhost:7357"));
    assert_false(guard_origin_is_own("null", "localhost:7357"));
    assert_false(guard_origin_is_own("", "localhost:7357"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loopback_names),
        cmocka_unit_test(test_only_the_own_origin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
