/* Addresses of services and their answers, whole and cut off. */
#include "daemon/client/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/array.h"

static void test_addresses(void **state)
{
    static const struct {
        const char *url, *host, *port;
    } cases[] = {
        { "http://127.0.0.1:7357", "127.0.0.1", "7357" },
        { "http://localhost:80/", "localhost", "80" },
        { "HTTP://[::1]:65535", "::1", "65535" },
        { "node-1:1", "node-1", "1" },
        { "", "127.0.0.1", "7357" },
        { NULL, "127.0.0.1", "7357" },
        { "http://localhost", NULL, NULL },
        { "http://:7357", NULL, NULL },
        { "http://a:", NULL, NULL },
        { "http://a:0", NULL, NULL },
        { "http://a:65536", NULL, NULL },
        { "http://a:123456789", NULL, NULL },
        { "http://a:80x", NULL, NULL },
        { "http://a:-1", NULL, NULL },
        { "http://[::1", NULL, NULL },
        { "http://[::1]", NULL, NULL },
        { "http://a:80/v1", NULL, NULL },
        { "https://a:443", NULL, NULL },
    };

    (void)state;
    unsetenv("REPROD_SERVER");
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct err err = { .code = ERR_OK };
        struct server server;
        enum err_code code = server_read(cases[i].url, &server, &err);

        assert_int_equal(code, cases[i].host ? ERR_OK : ERR_INVALID);
        if (cases[i].host) {
            assert_string_equal(server.host, cases[i].host);
            assert_string_equal(server.port, cases[i].port);
        }
    }
}

static void test_the_variable_names_a_server(void **state)
{
    struct err err = { .code = ERR_OK };
    struct server server;

    (void)state;
    setenv("REPROD_SERVER", "http://other:99", 1);
    assert_int_equal(server_read(NULL, &server, &err), ERR_OK);
    assert_string_equal(server.authority, "other:99");
    assert_int_equal(server_read("mine:98", &server, &err), ERR_OK);
    assert_string_equal(server.authority, "mine:98");
    unsetenv("REPROD_SERVER");
}

#define HEAD    "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
#define CHUNKED HEAD "Transfer-Encoding: chunked\r\n\r\n"

static void test_answers(void **state)
{
    static const struct {
        const char *bytes, *body;
        enum err_code code;
    } cases[] = {
        { HEAD "Content-Length: 5\r\n\r\nhello", "hello", ERR_OK },
        { HEAD "content-length:0\r\n\r\n", NULL, ERR_OK },
        { HEAD "\r\nto the end", "to the end", ERR_OK },
        { CHUNKED "5\r\nhello\r\n1\r\n \r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
          "hello 0123456789", ERR_OK },
        { HEAD "Content-Length: 6\r\n\r\nhello", NULL, ERR_IO },
        { CHUNKED "5\r\nhello\r\n", NULL, ERR_IO },
        { CHUNKED "5\r\nhel", NULL, ERR_IO },
        { CHUNKED "fffffffffffffff\r\nhel", NULL, ERR_IO },
        { CHUNKED "x\r\nhello\r\n", NULL, ERR_PROTOCOL },
        { HEAD "Transfer-Encoding: gzip\r\n\r\nhello", NULL, ERR_IO },
        { "HTTP/1.1 200 OK\r\nContent-", NULL, ERR_IO },
        { "", NULL, ERR_IO },
        { "SSH-2.0-OpenSSH_9.2\r\n\r\n", NULL, ERR_PROTOCOL },
        { "HTTP/1.1 what\r\n\r\n", NULL, ERR_PROTOCOL },
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct err err = { .code = ERR_OK };
        struct answer answer;
        enum err_code code =
            answer_read(cases[i].bytes, strlen(cases[i].bytes), &answer, &err);

        assert_int_equal(code, cases[i].code);
        if (code == ERR_OK) {
            assert_int_equal(answer.status, 200);
            assert_string_equal(answer.type, "text/plain");
            assert_int_equal(answer.body.length,
                             cases[i].body ? strlen(cases[i].body) : 0);
            assert_true(!cases[i].body || strcmp(answer.body.data, cases[i].body) == 0);
        }
        answer_release(&answer);
    }
}

static void test_escapes(void **state)
{
    char *text = url_escape("a b/c?d=é&~-._Z9");

    (void)state;
    assert_string_equal(text, "a%20b%2Fc%3Fd%3D%C3%A9%26~-._Z9");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_the_variable_names_a_server),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_escapes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
