/* A path and its suffix find their route; other paths and methods get an answer that
 * helps. The table of routes is complete. */
#include "api/http/dispatch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Where METHOD PATH goes: the pattern, or "404", or "405 ALLOW". */
static void expect(const char *method, const char *path, const char *pattern,
                   enum format suffix, const char *argument)
{
    struct target t;
    struct dispatch_match m;

    assert_null(target_parse(path, &t));
    dispatch_find(method, &t, &m);
    if (!m.route) {
        print_message("%s %s: no route (allow '%s')\n", method, path, m.allow);
    }
    assert_non_null(m.route);
    assert_string_equal(m.route->pattern, pattern);
    assert_int_equal(m.suffix, suffix);
    if (argument) {
        assert_string_equal(m.arguments[0], argument);
    }
    target_release(&t);
}

static void expect_none(const char *method, const char *path, const char *allow)
{
    struct target t;
    struct dispatch_match m;

    assert_null(target_parse(path, &t));
    dispatch_find(method, &t, &m);
    assert_null(m.route);
    assert_string_equal(m.allow, allow);
    target_release(&t);
}

static void test_paths_find_their_routes(void **state)
{
    (void)state;
    expect("GET", "/", "/", FORMAT_NONE, NULL);
    expect("GET", "/v1/jobs", "/v1/jobs", FORMAT_NONE, NULL);
    expect("POST", "/v1/jobs", "/v1/jobs", FORMAT_NONE, NULL);
    expect("DELETE", "/v1/jobs/X", "/v1/jobs/{id}", FORMAT_NONE, "X");
    expect("POST", "/v1/jobs/X/rerun", "/v1/jobs/{id}/rerun", FORMAT_NONE, "X");
    expect("GET", "/v1/cells/7/history", "/v1/cells/{id}/history", FORMAT_NONE, "7");
}

static void test_suffix_names_the_format(void **state)
{
    (void)state;
    expect("GET", "/v1/jobs.txt", "/v1/jobs", FORMAT_TEXT, NULL);
    expect("GET", "/v1/matrix.csv", "/v1/matrix", FORMAT_CSV, NULL);
    expect("GET", "/v1/jobs/X.json", "/v1/jobs/{id}", FORMAT_JSON, "X");
    expect("GET", "/v1/jobs/X/digests.txt", "/v1/jobs/{id}/digests", FORMAT_TEXT, "X");
    /* No such representation: the text stays part of the name. */
    expect("GET", "/v1/cells/1.csv", "/v1/cells/{id}", FORMAT_NONE, "1.csv");
    expect("GET", "/openapi.json", "/openapi.json", FORMAT_NONE, NULL);
}

static void test_unknown_paths(void **state)
{
    (void)state;
    expect_none("GET", "/v1/job", "");
    expect_none("GET", "/v1/jobs/", "");
    expect_none("GET", "/v2/jobs", "");
    expect_none("GET", "/no-such-file.js", "");
    expect_none("POST", "/no-such-file.js", "");
    expect_none("GET", "/v1/jobs/X/rerun/again", "");
    expect_none("GET", "/v1/events.csv", "");
}

static void test_wrong_method_names_the_right_ones(void **state)
{
    (void)state;
    expect_none("PUT", "/v1/jobs", "POST, GET, HEAD");
    expect_none("POST", "/v1/jobs/X", "GET, HEAD, DELETE");
    expect_none("GET", "/v1/jobs/X/rerun", "POST");
    expect_none("DELETE", "/v1/jobs.txt", "GET, HEAD");
}

static void test_a_misspelt_path_gets_an_idea(void **state)
{
    (void)state;
    assert_string_equal(dispatch_nearest("/v1/job"), "/v1/jobs");
    assert_string_equal(dispatch_nearest("/v1/martix"), "/v1/matrix");
    assert_null(dispatch_nearest("/something/else/entirely/and/long"));
}

static void test_every_route_is_whole(void **state)
{
    (void)state;
    for (int i = 0; i < route_count; i++) {
        const struct route *r = &routes[i];

        assert_non_null(r->handle);
        assert_non_null(r->help);
        assert_int_equal(r->pattern[0], '/');
        assert_int_not_equal(r->formats[0], FORMAT_NONE);
        assert_int_equal(r->formats[ROUTE_FORMATS_MAX - 1], FORMAT_NONE);
        for (int j = 0; j < i; j++) {
            assert_false(strcmp(r->pattern, routes[j].pattern) == 0 &&
                         strcmp(r->method, routes[j].method) == 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths_find_their_routes),
        cmocka_unit_test(test_suffix_names_the_format),
        cmocka_unit_test(test_unknown_paths),
        cmocka_unit_test(test_wrong_method_names_the_right_ones),
        cmocka_unit_test(test_a_misspelt_path_gets_an_idea),
        cmocka_unit_test(test_every_route_is_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
