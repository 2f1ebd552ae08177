#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/http/routes.h"
#include "daemon/base/buf.h"
#include "daemon/base/embed.h"
#include "daemon/base/mem.h"
#include "daemon/jobs/problem.h"

static json_t *load(void)
{
    const struct embed *file = embed_find("api/openapi.json");
    json_error_t error;
    json_t *root;

    assert_non_null(file);
    root = json_loadb(file->start, embed_size(file), JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        fail_msg("openapi.json, line %d: %s", error.line, error.text);
    }
    return root;
}

static json_t *operation_of(json_t *root, const struct route *route)
{
    char method[16];
    json_t *path = json_object_get(json_object_get(root, "paths"), route->pattern);

    copy_text(method, sizeof method, route->method);
    for (char *c = method; *c; c++) {
        *c = (char)(*c | 0x20);
    }
    return json_object_get(path, method);
}

static void test_every_route_is_described(void **state)
{
    json_t *root = load();

    (void)state;
    for (int i = 0; i < route_count; i++) {
        json_t *operation = operation_of(root, &routes[i]);
        json_t *responses = json_object_get(operation, "responses");
        json_t *good = json_object_get(responses, "200");
        json_t *content = json_object_get(good, "content");

        if (!operation) {
            fail_msg("%s %s is not described", routes[i].method, routes[i].pattern);
        }
        assert_string_equal(json_string_value(json_object_get(operation, "summary")),
                            routes[i].help);
        for (const enum format *f = routes[i].formats; *f != FORMAT_NONE; f++) {
            assert_non_null(
                json_object_get(content, *f == FORMAT_FILE ? "*/*" : format_type(*f)));
        }
    }
    json_decref(root);
}

static void test_nothing_else_is_described(void **state)
{
    json_t *root = load();
    const char *pattern;
    const char *method;
    json_t *path;
    json_t *operation;
    int count = 0;

    (void)state;
    json_object_foreach(json_object_get(root, "paths"), pattern, path)
    {
        json_object_foreach(path, method, operation)
        {
            count++;
        }
    }
    assert_int_equal(count, route_count);
    json_decref(root);
}

static void test_query_parameters_are_described(void **state)
{
    json_t *root = load();

    (void)state;
    for (int i = 0; i < route_count; i++) {
        json_t *parameters =
            json_object_get(operation_of(root, &routes[i]), "parameters");
        const char *known = routes[i].parameters ? routes[i].parameters : "";
        size_t index;
        json_t *p;
        struct buf described = BUF_INIT;

        if (strcmp(known, "*") == 0) {
            continue;
        }
        json_array_foreach(parameters, index, p)
        {
            const char *in = json_string_value(json_object_get(p, "in"));

            if (in && strcmp(in, "query") == 0) {
                buf_puts(&described, described.length ? " " : "");
                buf_puts(&described, json_string_value(json_object_get(p, "name")));
            }
        }
        assert_string_equal(described.data ? described.data : "", known);
        buf_release(&described);
    }
    json_decref(root);
}

static void test_every_problem_is_described(void **state)
{
    json_t *root = load();
    json_t *schemas = json_object_get(json_object_get(root, "components"), "schemas");
    json_t *type = json_object_get(
        json_object_get(json_object_get(schemas, "Problem"), "properties"), "type");
    json_t *names = json_object_get(type, "enum");

    (void)state;
    assert_int_equal(json_array_size(names), PROBLEM_COUNT);
    for (int i = 0; i < PROBLEM_COUNT; i++) {
        assert_string_equal(json_string_value(json_array_get(names, (size_t)i)) +
                                strlen("/problems/"),
                            problem_type((enum problem_kind)i)->name);
    }
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_route_is_described),
        cmocka_unit_test(test_nothing_else_is_described),
        cmocka_unit_test(test_query_parameters_are_described),
        cmocka_unit_test(test_every_problem_is_described),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
