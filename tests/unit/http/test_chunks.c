/* Bodies in chunks, as they come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/http/chunks.h"

/* What is wrong with a body of BYTES, in whatever parts they come; "": nothing. */
static const char *check(const char *bytes, size_t length)
{
    const char *problem = NULL;

    for (size_t cut = 0; cut <= length; cut++) {
        struct chunks chunks;
        const char *found;

        chunks_begin(&chunks);
        chunks_take(&chunks, bytes, cut);
        chunks_take(&chunks, bytes + cut, length - cut);
        found = chunks_end(&chunks);
        if (cut > 0 && found != problem) {
            fail_msg("cut at %zu: %s", cut, found ? found : "");
        }
        problem = found;
    }
    return problem ? problem : "";
}

#define CHECK(bytes) check(bytes, sizeof(bytes) - 1)

static void test_as_they_should_be(void **state)
{
    static const char *const good[] = {
        "0\r\n\r\n",
        "2\r\n{}\r\n0\r\n\r\n",
        "00002\r\n{}\r\n000\r\n\r\n",
        "A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n",
        "2;a=\"b\";c\r\n{}\r\n0;d\r\n\r\n",
        "2 \t;a\r\n{}\r\n0\r\n\r\n",
        ("4\r\n\n\r\n\r\r\n0\r\nX: a\r\nY:\tb\r\nZ:\r\n"
         "0!#$%&'*+-.^_`|~:\r\n\r\n"),
        "0\r\n\r\nwhat\nfollows",
    };

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_string_equal(check(good[i], strlen(good[i])), "");
    }
}

static void test_what_is_wrong(void **state)
{
    static const struct {
        const char *bytes, *words;
    } bad[] = {
        { "2\n{}\r\n0\r\n\r\n", "size does not end with CR LF" },
        { "2;a\n{}\r\n0\r\n\r\n", "size does not end with CR LF" },
        { "2\r{}\r\n0\r\n\r\n", "size does not end with CR LF" },
        { "2;a\r{}\r\n0\r\n\r\n", "size does not end with CR LF" },
        { "2,\r\n{}\r\n0\r\n\r\n", "size does not end with CR LF" },
        { "0\n\r\n", "size does not end with CR LF" },
        { "2;\033\r\n{}\r\n0\r\n\r\n", "control character" },
        { "\r\n{}\r\n0\r\n\r\n", "no number in hex" },
        { "x\r\n", "no number in hex" },
        { "-1\r\n", "no number in hex" },
        { "0x2\r\n{}\r\n0\r\n\r\n", "size does not end with CR LF" },
        { "1000000000000000\r\n", "too large" },
        { "2\r\n{}0\r\n\r\n", "not followed by CR LF" },
        { "2\r\n{}\n0\r\n\r\n", "not followed by CR LF" },
        { "2\r\n{}\r0\r\n\r\n", "not followed by CR LF" },
        { "2\r\n{}\r\n\r\n", "no number in hex" },
        { "0\r\n\n", "behind the chunks" },
        { "0\r\n\rX", "behind the chunks" },
        { "0\r\nX: a\n\r\n", "behind the chunks" },
        { "0\r\nX: a\rb\r\n\r\n", "behind the chunks" },
        { "0\r\nX : a\r\n\r\n", "not a token" },
        { "0\r\nX\t: a\r\n\r\n", "not a token" },
        { "0\r\nX\r\n\r\n", "not a token" },
        { "0\r\n: a\r\n\r\n", "not a token" },
        { "0\r\n X: a\r\n\r\n", "not a token" },
        { "0\r\nX: a\r\n b\r\n\r\n", "not a token" },
        { "0\r\nX\"Y: a\r\n\r\n", "not a token" },
        { "0\r\nX\n: a\r\n\r\n", "not a token" },
        { "0\r\n", "do not end" },
        { "2\r\n{", "do not end" },
        { "", "do not end" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *found = check(bad[i].bytes, strlen(bad[i].bytes));

        if (!strstr(found, bad[i].words)) {
            fail_msg("%zu: '%s' instead of '%s'", i, found, bad[i].words);
        }
    }
    assert_non_null(strstr(CHECK("2;\0\r\n{}\r\n0\r\n\r\n"), "control character"));
    assert_non_null(strstr(CHECK("0\r\nX\0: a\r\n\r\n"), "not a token"));
    assert_non_null(strstr(CHECK("0\r\nX: \0\r\n\r\n"), "control character"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_they_should_be),
        cmocka_unit_test(test_what_is_wrong),
    };

    return cmocka_run_group_tests_name("chunks", tests, NULL, NULL);
}
