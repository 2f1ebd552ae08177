/* The description of the interface (/openapi.json) agrees with the table of routes, the
 * types of problems and the schemas. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/http/handlers.h"
#include "api/http/request.h"
#include "api/http/routes.h"
#include "daemon/base/mem.h"
#include "daemon/jobs/problem.h"

static json_t *load(void)
{
    struct request r = { .method = "GET" };
    json_error_t error;
    json_t *root;

    openapi_get(&r);
    root = json_loadb(r.reply.body, r.reply.length, JSON_REJECT_DUPLICATES, &error);

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
        json_t *content = json_object_get(json_object_get(responses, "200"), "content");

        if (!operation) {
            fail_msg("%s %s is not described", routes[i].method, routes[i].pattern);
        }
        assert_string_equal(json_string_value(json_object_get(operation, "summary")),
                            routes[i].help);
        for (const enum format *f = routes[i].formats;
             *f != FORMAT_NONE && !routes[i].creates && !routes[i].makes; f++) {
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
    json_t *path;
    size_t count = 0;

    (void)state;
    json_object_foreach(json_object_get(root, "paths"), pattern, path)
    {
        count += json_object_size(path);
    }
    assert_int_equal(count, route_count);
    json_decref(root);
}

static void test_parameters_are_those_of_the_route(void **state)
{
    json_t *root = load();

    (void)state;
    for (int i = 0; i < route_count; i++) {
        json_t *parameters =
            json_object_get(operation_of(root, &routes[i]), "parameters");
        const struct parameter *const *known = routes[i].parameters;
        int segments = 0;
        size_t index;
        json_t *p;

        json_array_foreach(parameters, index, p)
        {
            const char *in = json_string_value(json_object_get(p, "in"));

            if (in) {
                assert_string_equal(json_string_value(json_object_get(p, "name")),
                                    (*known)->name);
                segments += strcmp(in, "path") == 0;
                known++;
            }
        }
        assert_null(*known);
        /* Each {…} of the path is declared. */
        for (const char *c = routes[i].pattern; *c; c++) {
            segments -= *c == '{';
        }
        assert_int_equal(segments, 0);
    }
    json_decref(root);
}

/* Fails unless what each "$ref" below VALUE names is in ROOT; counts them by name. */
static void follow(json_t *root, json_t *value, json_t *used)
{
    const char *key;
    json_t *member;
    size_t i;

    json_object_foreach(value, key, member)
    {
        if (strcmp(key, "$ref") == 0) {
            json_t *at = root;
            char *path = xstrdup(json_string_value(member));
            char *rest = path + strlen("#/");

            for (char *name = strsep(&rest, "/"); name; name = strsep(&rest, "/")) {
                at = json_object_get(at, name);
            }
            if (!at) {
                fail_msg("%s is nowhere", json_string_value(member));
            }
            json_object_set_new(used, json_string_value(member), json_true());
            free(path);
        }
        follow(root, member, used);
    }
    if (json_is_array(value)) {
        json_array_foreach(value, i, member)
        {
            follow(root, member, used);
        }
    }
}

static void test_what_is_referred_to_is_there_and_nothing_else(void **state)
{
    json_t *root = load();
    json_t *used = json_object();
    const char *kind;
    const char *name;
    json_t *components;
    json_t *component;

    (void)state;
    follow(root, root, used);
    json_object_foreach(json_object_get(root, "components"), kind, components)
    {
        json_object_foreach(components, name, component)
        {
            char *path = xasprintf("#/components/%s/%s", kind, name);

            if (!json_object_get(used, path)) {
                fail_msg("nothing refers to %s", path);
            }
            free(path);
        }
    }
    json_decref(used);
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
        cmocka_unit_test(test_parameters_are_those_of_the_route),
        cmocka_unit_test(test_what_is_referred_to_is_there_and_nothing_else),
        cmocka_unit_test(test_every_problem_is_described),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
