/* Hosts of a configuration: an entry that stands for many. */
#include "daemon/config/hosts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/array.h"
#include "daemon/base/buf.h"
#include "daemon/base/json_in.h"

#define SSH "\"launch\":[\"ssh\",\"{host}\",\"agent\"]"

static json_t *expanded(const char *text, struct err *err)
{
    json_t *hosts = json_loads(text, 0, NULL);
    json_t *all;

    assert_non_null(hosts);
    all = hosts_expand(hosts, "c.json", err);
    json_decref(hosts);
    return all;
}

/* Their names, with spaces between. */
static void check_names(const char *name, const char *expected)
{
    struct buf text = BUF_INIT, names = BUF_INIT;
    struct err err = { .code = ERR_OK };
    json_t *all, *host;
    size_t i;

    buf_printf(&text, "[{\"name\":\"%s\"," SSH "}]", name);
    all = expanded(text.data, &err);
    assert_non_null(all);
    json_array_foreach(all, i, host)
    {
        const char *own = in_text_or_empty(host, "name");

        buf_printf(&names, "%s%s", i ? " " : "", own);
        assert_string_equal(
            json_string_value(json_array_get(json_object_get(host, "launch"), 1)), own);
    }
    assert_string_equal(names.data, expected);
    json_decref(all);
    buf_release(&text);
    buf_release(&names);
}

static void test_ranges(void **state)
{
    (void)state;
    check_names("gpu1", "gpu1");
    check_names("gpu-[001-003,070]", "gpu-001 gpu-002 gpu-003 gpu-070");
    check_names("n[8-11]", "n8 n9 n10 n11");
    check_names("n[08-11]x", "n08x n09x n10x n11x");
    check_names("r[1-2]n[0,5].site", "r1n0.site r1n5.site r2n0.site r2n5.site");
    check_names("n[099-100]", "n099 n100");
    check_names("n[0]", "n0");
}

static void test_words_of_launch(void **state)
{
    struct err err = { .code = ERR_OK };
    json_t *all = expanded(
        "[{\"name\":\"a\",\"launch\":[\"x\",\"{host}-{host}.z\","
        "\"{hos}\",\"\"]},{\"name\":\"b\",\"launch\":[\"y\"]}]",
        &err);
    json_t *wanted = json_loads(
        "[{\"name\":\"a\",\"launch\":[\"x\",\"a-a.z\",\"{hos}\",\"\"],\"entry\":0},"
        "{\"name\":\"b\",\"launch\":[\"y\"],\"entry\":1}]",
        0, NULL);

    (void)state;
    assert_true(json_equal(all, wanted));
    json_decref(all);
    json_decref(wanted);
    all = expanded("[]", &err);
    assert_int_equal(json_array_size(all), 0);
    json_decref(all);
}

/* Each host of an entry has what the entry says. */
static void test_settings(void **state)
{
    struct err err = { .code = ERR_OK };
    json_t *all =
        expanded("[{\"name\":\"a\",\"launch\":[\"x\"]},{\"name\":\"n[1-3]\"," SSH
                 ",\"keep\":\"needed\",\"idle_release_s\":7,\"hello_s\":0,\"at_once\":2},"
                 "{\"name\":\"c\",\"launch\":[\"x\"],\"keep\":\"always\",\"at_once\":1}]",
                 &err);
    struct host_settings s;

    (void)state;
    assert_non_null(all);
    hosts_settings(json_array_get(all, 0), &s);
    assert_string_equal(s.name, "a");
    assert_false(s.needed);
    assert_int_equal(s.idle_release_s, 60);
    assert_int_equal(s.hello_s, HOSTS_HELLO_USUAL);
    assert_int_equal(s.at_once, 0);
    assert_int_equal(s.entry, 0);
    hosts_settings(json_array_get(all, 3), &s);
    assert_string_equal(s.name, "n3");
    assert_string_equal(json_string_value(json_array_get(s.launch, 1)), "n3");
    assert_true(s.needed);
    assert_int_equal(s.idle_release_s, 7);
    assert_int_equal(s.hello_s, 0);
    assert_int_equal(s.at_once, 2);
    assert_int_equal(s.entry, 1);
    hosts_settings(json_array_get(all, 4), &s);
    assert_false(s.needed);
    assert_int_equal(s.at_once, 1);
    json_decref(all);
}

static void test_what_is_wrong(void **state)
{
    static const struct {
        const char *hosts, *message;
    } cases[] = {
        { "[{\"name\":\"n[1-\"," SSH "}]", "'[1-' is no list of numbers" },
        { "[{\"name\":\"n[]\"," SSH "}]", "'[]' is no list of numbers" },
        { "[{\"name\":\"n[2-1]\"," SSH "}]", "'[2-1]' is no list of numbers" },
        { "[{\"name\":\"n[a]\"," SSH "}]", "'[a]' is no list of numbers" },
        { "[{\"name\":\"n[1,]\"," SSH "}]", "'[1,]' is no list of numbers" },
        { "[{\"name\":\"n[1--2]\"," SSH "}]", "'[1--2]' is no list of numbers" },
        { "[{\"name\":\"n[1-2-3]\"," SSH "}]", "'[1-2-3]' is no list of numbers" },
        { "[{\"name\":\"n[1234567890]\"," SSH "}]", "is no list of numbers" },
        { "[{\"name\":\"n[1[2]]\"," SSH "}]", "'[1[2]]' is no list of numbers" },
        { "[{\"name\":\"n1]\"," SSH "}]", "'n1]' closes what was not opened" },
        { "[{\"name\":\"n[1]]\"," SSH "}]", "']' closes what was not opened" },
        { "[{\"name\":\"n[1-2]\",\"launch\":[\"ssh\",\"n1\"]}]",
          "c.json: /hosts/0/launch: no word has {host}, so one command would start all "
          "of 'n[1-2]'" },
        { "[{\"name\":\"n2\"," SSH "},{\"name\":\"n[1-3]\"," SSH "}]",
          "c.json: /hosts/1/name: 'n2' is listed twice" },
        { "[{\"name\":\"n[1-3]\"," SSH ",\"at_once\":2}]",
          "c.json: /hosts/0/at_once: is 2 of 3 hosts, so some would wait for ever: say "
          "\"keep\":\"needed\"" },
        { "[{\"name\":\"n[1,1]\"," SSH "}]", "'n1' is listed twice" },
        { "[{\"name\":\"n[1-9999]\"," SSH "}]", "there are more than 4096 hosts" },
        { "[{\"name\":\"n[1-99999]m[1-99999]\"," SSH "}]",
          "there are more than 4096 hosts" },
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct err err = { .code = ERR_OK };

        assert_null(expanded(cases[i].hosts, &err));
        assert_int_equal(err.code, ERR_INVALID);
        assert_non_null(strstr(err.message, cases[i].message));
    }
}

static void test_a_name_that_becomes_too_long(void **state)
{
    struct err err = { .code = ERR_OK };
    struct buf hosts = BUF_INIT;

    (void)state;
    buf_puts(&hosts, "[{\"name\":\"");
    for (int i = 0; i < 253; i++) {
        buf_putc(&hosts, 'n');
    }
    buf_puts(&hosts, "[99-100]\"," SSH "}]");
    assert_null(expanded(hosts.data, &err));
    assert_non_null(strstr(err.message, "has more than 255 bytes"));
    buf_release(&hosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_words_of_launch),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_what_is_wrong),
        cmocka_unit_test(test_a_name_that_becomes_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
