/* The format that a request gets, from its Accept header or the suffix of its path. */
#include "api/http/negotiate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const enum format table[] = { FORMAT_JSON, FORMAT_TEXT, FORMAT_CSV, FORMAT_NONE };
static const enum format root[] = { FORMAT_TEXT, FORMAT_HTML, FORMAT_JSON, FORMAT_NONE };

static void test_default_is_the_first(void **state)
{
    (void)state;
    assert_int_equal(negotiate(NULL, table), FORMAT_JSON);
    assert_int_equal(negotiate("*/*", table), FORMAT_JSON);
    assert_int_equal(negotiate("", table), FORMAT_JSON);
    assert_int_equal(negotiate("nonsense", table), FORMAT_JSON);
    assert_int_equal(negotiate("*/*", root), FORMAT_TEXT);
}

static void test_a_browser_gets_the_page(void **state)
{
    const char *browser =
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8";

    (void)state;
    assert_int_equal(negotiate(browser, root), FORMAT_HTML);
    assert_int_equal(negotiate(browser, table), FORMAT_JSON);
}

/* What Prometheus 2.42 sends. */
static void test_a_scraper_gets_openmetrics(void **state)
{
    static const enum format metrics[] = { FORMAT_TEXT, FORMAT_OPENMETRICS, FORMAT_NONE };

    (void)state;
    assert_int_equal(negotiate("application/openmetrics-text;version=1.0.0,"
                               "application/openmetrics-text;version=0.0.1;q=0.75,"
                               "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                               metrics),
                     FORMAT_OPENMETRICS);
    assert_int_equal(negotiate("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", metrics),
                     FORMAT_TEXT);
    assert_int_equal(negotiate(NULL, metrics), FORMAT_TEXT);
}

static void test_quality_decides(void **state)
{
    (void)state;
    assert_int_equal(negotiate("text/csv, text/plain;q=0.5", table), FORMAT_CSV);
    assert_int_equal(negotiate("text/*;q=0.9, application/json;q=0.1", table),
                     FORMAT_TEXT);
    assert_int_equal(negotiate("TEXT/CSV ; Q=1", table), FORMAT_CSV);
    /* The more exact range wins, whatever the order. */
    assert_int_equal(negotiate("*/*, application/json;q=0", table), FORMAT_TEXT);
    assert_int_equal(negotiate("application/json;q=0, */*", table), FORMAT_TEXT);
}

static void test_nothing_acceptable(void **state)
{
    (void)state;
    assert_int_equal(negotiate("image/png", table), FORMAT_NONE);
    assert_int_equal(negotiate("application/json;q=0", table), FORMAT_NONE);
    assert_int_equal(negotiate("text/event-stream", root), FORMAT_NONE);
}

static void test_files_are_not_negotiated(void **state)
{
    static const enum format file[] = { FORMAT_FILE, FORMAT_NONE };

    (void)state;
    assert_int_equal(negotiate("image/png", file), FORMAT_FILE);
}

static void test_suffixes(void **state)
{
    (void)state;
    assert_int_equal(format_from_suffix(".csv"), FORMAT_CSV);
    assert_int_equal(format_from_suffix(".txt"), FORMAT_TEXT);
    assert_int_equal(format_from_suffix(".json"), FORMAT_JSON);
    assert_int_equal(format_from_suffix(".html"), FORMAT_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_is_the_first),
        cmocka_unit_test(test_a_browser_gets_the_page),
        cmocka_unit_test(test_a_scraper_gets_openmetrics),
        cmocka_unit_test(test_quality_decides),
        cmocka_unit_test(test_nothing_acceptable),
        cmocka_unit_test(test_files_are_not_negotiated),
        cmocka_unit_test(test_suffixes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
