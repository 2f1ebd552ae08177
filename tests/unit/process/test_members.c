/* What an agent or a worker left out, or wrote otherwise, is named. */
#include "daemon/process/members.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* What is wrong with TEXT, an object {"log": text, "pid": whole number, "ms": number,
 * "env": any} and perhaps {"claim": text}; "" where nothing is. */
static const char *wrong(const char *text)
{
    static struct err err;
    json_t *object = json_loads(text, JSON_DECODE_ANY, NULL), *env;
    const char *log, *claim = "none";
    size_t log_length;
    json_int_t pid;
    double ms;
    enum err_code code;

    assert_non_null(object);
    code =
        members_unpack(object, &err, "{s:s%,s:I,s:F,s:o,s?s}", "log", &log, &log_length,
                       "pid", &pid, "ms", &ms, "env", &env, "claim", &claim);
    json_decref(object);
    assert_true(code == ERR_OK || code == ERR_PROTOCOL);
    return code == ERR_OK ? "" : err.message;
}

static void test_members_are_named(void **state)
{
    (void)state;
    assert_string_equal(wrong("{\"log\":\"\",\"pid\":7,\"ms\":1,\"env\":null}"), "");
    assert_string_equal(
        wrong("{\"log\":\"\",\"pid\":7,\"ms\":1.5,\"env\":{},\"claim\":\"c\",\"x\":0}"),
        "");
    assert_string_equal(wrong("{\"pid\":7,\"ms\":1,\"env\":{}}"), "log is missing");
    assert_string_equal(wrong("{\"log\":\"\",\"pid\":7.5,\"ms\":1,\"env\":{}}"),
                        "pid is not a whole number");
    assert_string_equal(wrong("{\"log\":\"\",\"pid\":7,\"ms\":\"1\",\"env\":{}}"),
                        "ms is not a number");
    assert_string_equal(wrong("{\"log\":\"\",\"pid\":7,\"ms\":1}"), "env is missing");
    assert_string_equal(
        wrong("{\"log\":\"\",\"pid\":7,\"ms\":1,\"env\":{},\"claim\":true}"),
        "claim is not a text");
    assert_string_equal(wrong("[]"), "log is missing");
}

static void test_values_are_read(void **state)
{
    json_t *object =
        json_pack("{s:s%,s:I}", "log", "a\0b", (size_t)3, "pid", (json_int_t)1 << 40);
    const char *log;
    size_t length;
    json_int_t pid;
    struct err err;

    (void)state;
    assert_int_equal(
        members_unpack(object, &err, "{s:s%,s:I}", "log", &log, &length, "pid", &pid),
        ERR_OK);
    assert_int_equal(length, 3);
    assert_memory_equal(log, "a\0b", 4);
    assert_true(pid == (json_int_t)1 << 40);
    json_decref(object);
}

static void test_hex_is_lower_case_and_whole(void **state)
{
    struct err err;

    (void)state;
    assert_int_equal(member_check_hex("digest", "00ff", 4, &err), ERR_OK);
    assert_int_equal(member_check_hex("digest", "00FF", 4, &err), ERR_PROTOCOL);
    assert_string_equal(err.message, "digest is not 4 hex digits");
    assert_int_equal(member_check_hex("digest", "00f", 4, &err), ERR_PROTOCOL);
    assert_int_equal(member_check_hex("digest", "00ff0", 4, &err), ERR_PROTOCOL);
    assert_int_equal(member_check_hex("digest", "", 0, &err), ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_are_named),
        cmocka_unit_test(test_values_are_read),
        cmocka_unit_test(test_hex_is_lower_case_and_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
