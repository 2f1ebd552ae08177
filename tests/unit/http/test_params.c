/* Bodies are read as strict JSON: one object, bounded in depth, no key twice, the right
 * media type. */
#include "api/http/params.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static json_t *parse(const char *text)
{
    char detail[BODY_DETAIL_SIZE] = "";
    json_t *root = body_parse(text, strlen(text), detail);

    assert_true(root || detail[0]);
    return root;
}

static void refused(const char *text)
{
    json_t *root = parse(text);

    if (root) {
        json_decref(root);
        fail_msg("accepted %s", text);
    }
}

static void test_json_is_read(void **state)
{
    json_t *root = parse("{\"a\":[1,\"[[[[\\\"{\"]}");

    (void)state;
    assert_int_equal(json_array_size(json_object_get(root, "a")), 2);
    json_decref(root);
}

static void test_what_is_not_json_is_refused(void **state)
{
    (void)state;
    refused("");
    refused("{");
    refused("{\"a\":1,}");
    refused("{\"a\":1}{}");
    refused("{'a':1}");
    refused("{\"a\":\"\\u0000\"}");
    refused("{\"a\":1e999}");
    refused("{\"a\":99999999999999999999}");
    refused("{\"a\":\"\xff\"}");
    refused("12");
}

static void test_a_key_twice_is_refused(void **state)
{
    (void)state;
    refused("{\"runs\":1,\"runs\":2}");
    refused("{\"x\":{\"y\":1,\"y\":1}}");
}

static void test_depth_is_bounded(void **state)
{
    char text[2 * BODY_DEPTH_MAX + 3];
    json_t *root;

    (void)state;
    memset(text, '[', BODY_DEPTH_MAX);
    memset(text + BODY_DEPTH_MAX, ']', BODY_DEPTH_MAX);
    text[2 * BODY_DEPTH_MAX] = '\0';
    root = parse(text);
    assert_non_null(root);
    json_decref(root);
    memset(text, '[', BODY_DEPTH_MAX + 1);
    memset(text + BODY_DEPTH_MAX + 1, ']', BODY_DEPTH_MAX + 1);
    text[2 * BODY_DEPTH_MAX + 2] = '\0';
    refused(text);
}

static void test_types(void **state)
{
    (void)state;
    assert_true(body_type_is_json(NULL));
    assert_true(body_type_is_json("application/json"));
    assert_true(body_type_is_json("Application/JSON; charset=utf-8"));
    assert_true(body_type_is_json("application/x-www-form-urlencoded"));
    assert_false(body_type_is_json("text/plain"));
    assert_false(body_type_is_json("application/jsonx"));
    assert_false(body_type_is_json("multipart/form-data"));
    assert_false(body_type_is_json(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_is_read),
        cmocka_unit_test(test_what_is_not_json_is_refused),
        cmocka_unit_test(test_a_key_twice_is_refused),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_types),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
