/* What is wrong with the service: which of it keeps it from being ready, since when, and
 * that it is logged once. */
#include "daemon/base/health.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/buf.h"
#include "daemon/base/log.h"

static struct buf logged;

static void keep_line(void *arg, const char *line)
{
    (void)arg;
    buf_printf(&logged, "%s|", line);
}

static void test_what_keeps_it_from_being_ready(void **state)
{
    (void)state;
    for (int i = 0; i < HEALTH_CONDITIONS; i++) {
        struct health health = { 0 };

        assert_true(health_ready(&health));
        health_set(&health, (enum health_condition)i, "why", 7);
        assert_int_equal(health_ready(&health), i == HEALTH_HOSTS);
        health_set(&health, (enum health_condition)i, NULL, 8);
        assert_true(health_ready(&health));
    }
    assert_string_equal(health_name(HEALTH_STORAGE), "storage");
}

static void test_since_when(void **state)
{
    struct health health = { 0 };

    (void)state;
    health_set(&health, HEALTH_LOOP, "one", 10);
    health_set(&health, HEALTH_LOOP, "another", 20);
    assert_int_equal(health.conditions[HEALTH_LOOP].since_ms, 10);
    assert_string_equal(health.conditions[HEALTH_LOOP].cause, "another");
    health_set(&health, HEALTH_LOOP, NULL, 30);
    health_set(&health, HEALTH_LOOP, "again", 40);
    assert_int_equal(health.conditions[HEALTH_LOOP].since_ms, 40);
}

static void test_what_changes_is_logged_once(void **state)
{
    struct health health = { 0 };

    (void)state;
    log_set_sink(keep_line, NULL);
    health_log(&health);
    assert_int_equal(logged.length, 0);
    for (int i = 0; i < 3; i++) {
        health_set(&health, HEALTH_STORAGE, "full", 10 + i);
        health_set(&health, HEALTH_HOSTS, "one is away", 10 + i);
        health_log(&health);
    }
    health_set(&health, HEALTH_STORAGE, NULL, 20);
    health_log(&health);
    health_log(&health);
    log_set_sink(NULL, NULL);
    assert_non_null(strstr(logged.data, "error health: not ready: storage: full|"));
    assert_non_null(strstr(logged.data, "warning health: hosts: one is away|"));
    assert_non_null(strstr(logged.data, "info health: storage: well again|"));
    for (char *c = logged.data; *c; c++) {
        logged.length -= *c != '|';
    }
    assert_int_equal(logged.length, 3);
    buf_release(&logged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_keeps_it_from_being_ready),
        cmocka_unit_test(test_since_when),
        cmocka_unit_test(test_what_changes_is_logged_once),
    };

    return cmocka_run_group_tests_name("health", tests, NULL, NULL);
}
