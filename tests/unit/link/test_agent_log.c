/* What an agent says on standard error fills no disk. */
#include "daemon/link/agent_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/buf.h"
#include "daemon/base/log.h"

static struct buf seen;
static int lines;

static void take(void *arg, const char *line)
{
    (void)arg;
    lines++;
    buf_printf(&seen, "%s\n", line);
}

static int begin(void **state)
{
    (void)state;
    lines = 0;
    log_set_sink(take, NULL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    log_set_sink(NULL, NULL);
    buf_release(&seen);
    return 0;
}

static void say(struct agent_log *log, int count, const char *line, int64_t now_ms)
{
    for (int i = 0; i < count; i++) {
        agent_log_add(log, line, strlen(line), now_ms);
    }
}

static void expect(const char *text)
{
    if (!strstr(seen.data, text)) {
        fail_msg("'%s' is not in:\n%s", text, seen.data);
    }
}

static void test_lines_are_copied(void **state)
{
    struct agent_log log = { .host = "h" };

    (void)state;
    say(&log, 1, "2026-01-01T00:00:00.000Z error disk: gone\nplain\nlast", 1);
    assert_int_equal(lines, 2);
    assert_string_equal(log.last, "plain");
    agent_log_end(&log, 2);
    assert_int_equal(lines, 3);
    expect("error h: disk: gone\n");
    expect("info h: plain\n");
    expect("info h: last\n");
    assert_false(agent_log_overflows(&log));
}

static void test_a_flood_of_lines(void **state)
{
    struct agent_log log = { .host = "h" };

    (void)state;
    say(&log, AGENT_LOG_LINES, "again\n", 1000);
    assert_int_equal(lines, AGENT_LOG_LINES);
    assert_false(agent_log_overflows(&log));
    say(&log, 100000, "again\n", 1000);
    assert_int_equal(lines, AGENT_LOG_LINES + 1);
    expect("it says more on its standard error than is logged");
    assert_true(agent_log_overflows(&log));
    say(&log, 1, "its last word\n", 1001);
    assert_string_equal(log.last, "its last word");
    agent_log_tick(&log, 1000 + AGENT_LOG_WINDOW_MS - 1);
    assert_int_equal(lines, AGENT_LOG_LINES + 1);
    agent_log_tick(&log, 1000 + AGENT_LOG_WINDOW_MS);
    expect("h: 100001 more lines of its standard error, 600014 bytes, were left out");
    assert_false(agent_log_overflows(&log));
    say(&log, 1, "quiet again\n", 1000 + AGENT_LOG_WINDOW_MS);
    expect("info h: quiet again\n");
    assert_int_equal(lines, AGENT_LOG_LINES + 3);
}

static void test_a_flood_of_bytes(void **state)
{
    struct agent_log log = { .host = "h" };
    char line[1002];

    (void)state;
    memset(line, 'x', sizeof line);
    line[1000] = '\n';
    line[1001] = '\0';
    say(&log, 70, line, 5);
    assert_int_equal(lines, AGENT_LOG_BYTES / 1000 + 1);
    agent_log_end(&log, 6);
    expect("h: 5 more lines of its standard error, 5005 bytes, were left out");
}

/* Without an end, it is one line, and cut. */
static void test_a_line_without_an_end(void **state)
{
    struct agent_log log = { .host = "h" };

    (void)state;
    say(&log, 100000, "x", 5);
    assert_int_equal(lines, 0);
    agent_log_end(&log, 6);
    assert_int_equal(lines, 1);
    assert_true(seen.length < AGENT_LOG_LINE_SIZE + 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lines_are_copied, begin, end),
        cmocka_unit_test_setup_teardown(test_a_flood_of_lines, begin, end),
        cmocka_unit_test_setup_teardown(test_a_flood_of_bytes, begin, end),
        cmocka_unit_test_setup_teardown(test_a_line_without_an_end, begin, end),
    };

    return cmocka_run_group_tests_name("agent_log", tests, NULL, NULL);
}
