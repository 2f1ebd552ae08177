/* When recurring jobs are due. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/base/array.h"
#include "daemon/base/clock.h"
#include "daemon/jobs/schedule.h"

static int64_t at(const char *text)
{
    int64_t ms;

    assert_int_equal(clock_parse_rfc3339(text, &ms), 0);
    return ms;
}

static struct schedule with_calendar(const char *text)
{
    struct schedule s = { .spread_seconds = -1 };
    struct err err;
    int column;

    assert_int_equal(calendar_parse(text, &s.calendar, &column, &err), ERR_OK);
    return s;
}

static void test_periods_as_text(void **state)
{
    static const struct {
        const char *text;
        int64_t seconds;
        int column; /* of what is wrong */
    } cases[] = {
        { "1m", 60, 0 },      { "90m", 5400, 0 },   { "6h", 21600, 0 },
        { "1d", 86400, 0 },   { "2w", 1209600, 0 }, { "", 0, 1 },
        { "6", 0, 2 },        { "h", 0, 1 },        { "0h", 0, 1 },
        { "06h", 0, 1 },      { "-1h", 0, 1 },      { "1h ", 0, 3 },
        { "1.5h", 0, 2 },     { "1s", 0, 2 },       { "999999h", 3599996400, 0 },
        { "99999999h", 0, 7 }
    };
    int column;
    char text[SCHEDULE_WHEN_SIZE];

    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(schedule_parse_every(cases[i].text, &column), cases[i].seconds);
        assert_int_equal(cases[i].seconds ? 0 : column, cases[i].column);
    }
    schedule_format_every(5400, text);
    assert_string_equal(text, "90m");
    schedule_format_every(14 * 86400, text);
    assert_string_equal(text, "2w");
    schedule_format_every(86400, text);
    assert_string_equal(text, "1d");
}

static void test_wrong_calendars_say_where(void **state)
{
    static const struct {
        const char *text;
        int column;
        const char *says;
    } cases[] = {
        { "", 1, "a number or * is expected (minute, 0-59)" },
        { "60 * * * *", 1, "out of bounds (minute, 0-59)" },
        { "0 24 * * *", 3, "out of bounds (hour, 0-23)" },
        { "0 0 0 * *", 5, "out of bounds (day of the month, 1-31)" },
        { "0 0 * 13 *", 7, "out of bounds (month, 1-12)" },
        { "0 0 * * 8", 9, "out of bounds (day of the week, 0-7)" },
        { "0 0 * *", 8, "the day of the week is missing: five fields" },
        { "0 0 * * * *", 11, "more than five fields" },
        { "a 0 * * *", 1, "a number or * is expected" },
        { "0 5-3 * * *", 3, "the range ends before it begins" },
        { "0 */0 * * *", 5, "out of bounds" },
        { "0,,5 * * * *", 3, "a number or * is expected" },
        { "0 1- * * *", 5, "a number or * is expected" },
        { "0 1x * * *", 4, "not understood" },
        { "0 0 * jan *", 7, "a number or * is expected" },
        { "0 0 1 * 1", 1, "make two schedules" },
    };
    struct calendar calendar;
    struct err err;
    int column;

    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(calendar_parse(cases[i].text, &calendar, &column, &err),
                         ERR_INVALID);
        if (column != cases[i].column || !strstr(err.message, cases[i].says)) {
            fail_msg("'%s': column %d, '%s'", cases[i].text, column, err.message);
        }
    }
}

static void test_next_of_calendars(void **state)
{
    static const struct {
        const char *calendar, *after, *next;
    } cases[] = {
        { "* * * * *", "2026-11-24T10:00:00Z", "2026-11-24T10:01:00Z" },
        { "* * * * *", "2026-11-24T10:00:59.999Z", "2026-11-24T10:01:00Z" },
        { "0 3 * * *", "2026-11-24T03:00:00Z", "2026-11-25T03:00:00Z" },
        { "0 3 * * *", "2026-11-24T02:59:59.999Z", "2026-11-24T03:00:00Z" },
        { "*/20 * * * *", "2026-11-24T23:40:00Z", "2026-11-25T00:00:00Z" },
        { "5-10/5,30 1 * * *", "2026-11-24T01:10:00Z", "2026-11-24T01:30:00Z" },
        { "0 0 1 1 *", "2026-11-24T00:00:00Z", "2027-01-01T00:00:00Z" },
        { "0 0 31 * *", "2026-11-01T00:00:00Z", "2026-12-31T00:00:00Z" },
        { "0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z" },
        { "0 0 29 2 *", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z" },
        { "0 9 * * 1-5", "2026-11-27T09:00:00Z", "2026-11-30T09:00:00Z" }, /* a Friday */
        { "0 9 * * 0", "2026-11-27T09:00:00Z", "2026-11-29T09:00:00Z" },
        { "0 9 * * 7", "2026-11-27T09:00:00Z", "2026-11-29T09:00:00Z" },
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct schedule s = with_calendar(cases[i].calendar);

        assert_int_equal(schedule_next(&s, at(cases[i].after)), at(cases[i].next));
    }
}

static void test_what_never_comes(void **state)
{
    struct schedule s = with_calendar("0 0 31 2,4,6,9,11 *");

    (void)state;
    assert_int_equal(schedule_next(&s, at("2026-11-24T00:00:00Z")), 0);
    assert_int_equal(schedule_gap_ms(&s, at("2026-11-24T00:00:00Z")), INT64_MAX);
}

/* Every minute of two years, asked one by one. */
static void test_next_is_the_first_that_matches(void **state)
{
    static const char *const calendars[] = { "7 */5 * * *", "0 0,12 1-7 */3 *",
                                             "59 23 * 2 6", "30 4 28-31 * *" };
    int64_t begin = at("2027-01-01T00:00:00Z");

    (void)state;
    for (int i = 0; i < COUNT_OF(calendars); i++) {
        struct schedule s = with_calendar(calendars[i]);
        int64_t expected = schedule_next(&s, begin - 1);
        int met = 0;

        for (int64_t ms = begin; ms < begin + 730LL * 86400 * 1000; ms += 60000) {
            time_t seconds = (time_t)(ms / 1000);
            struct tm tm;

            gmtime_r(&seconds, &tm);
            if ((s.calendar.minutes >> tm.tm_min & 1) != 0 &&
                (s.calendar.hours >> tm.tm_hour & 1) != 0 &&
                (s.calendar.days >> tm.tm_mday & 1) != 0 &&
                (s.calendar.months >> (tm.tm_mon + 1) & 1) != 0 &&
                (s.calendar.weekdays >> tm.tm_wday & 1) != 0) {
                assert_int_equal(expected, ms);
                expected = schedule_next(&s, ms);
                met++;
            }
        }
        assert_true(met > 5);
    }
}

static void test_periods_count_from_the_beginning(void **state)
{
    struct schedule s = { .every_seconds = 3600,
                          .created_ms = at("2026-11-24T10:07:03Z") };

    (void)state;
    assert_int_equal(schedule_next(&s, at("2026-11-24T09:30:00Z")),
                     at("2026-11-24T11:07:03Z"));
    assert_int_equal(schedule_next(&s, s.created_ms), at("2026-11-24T11:07:03Z"));
    assert_int_equal(schedule_next(&s, s.created_ms - 1), at("2026-11-24T11:07:03Z"));
    /* made while the clock was ahead: the same minute of the hour, and not in ten days */
    assert_int_equal(schedule_next(&s, at("2026-11-14T03:07:03Z")),
                     at("2026-11-14T04:07:03Z"));
    assert_int_equal(schedule_next(&s, at("2026-11-14T03:07:02Z")),
                     at("2026-11-14T03:07:03Z"));
    assert_int_equal(schedule_next(&s, at("2026-11-24T11:07:03Z")),
                     at("2026-11-24T12:07:03Z"));
    /* What was missed is due once, and the rhythm stays. */
    assert_int_equal(schedule_next(&s, at("2026-11-27T20:30:00Z")),
                     at("2026-11-27T21:07:03Z"));
}

static void test_shortest_gap(void **state)
{
    struct schedule s = with_calendar("0 1,2,13 * * 1");

    (void)state;
    assert_int_equal(schedule_gap_ms(&s, at("2026-11-24T00:00:00Z")), 3600 * 1000);
    s = (struct schedule){ .every_seconds = 120 };
    assert_int_equal(schedule_gap_ms(&s, 0), 120 * 1000);
}

static void test_hosts_begin_one_after_another(void **state)
{
    struct schedule s = { .id = "01M85BZ2PB9P4GGHC5X3N0KK4K", .spread_seconds = -1 };
    int64_t hour = 3600 * 1000;
    int64_t least = INT64_MAX;
    int64_t most = 0;

    (void)state;
    assert_int_equal(schedule_delay_ms(&s, "a", 1, hour), 0);
    for (int i = 0; i < 500; i++) {
        char host[16];
        int64_t delay;

        snprintf(host, sizeof host, "gpu-%03d", i);
        delay = schedule_delay_ms(&s, host, 500, hour);
        assert_int_equal(delay, schedule_delay_ms(&s, host, 500, hour));
        assert_in_range(delay, 0, 360 * 1000 - 1);
        least = delay < least ? delay : least;
        most = delay > most ? delay : most;
    }
    assert_true(least < 20 * 1000 && most > 340 * 1000);
    s.spread_seconds = 0;
    assert_int_equal(schedule_delay_ms(&s, "gpu-001", 500, hour), 0);
    s.spread_seconds = -1;
    assert_in_range(schedule_delay_ms(&s, "gpu-001", 500, INT64_MAX), 0, 600 * 1000 - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_periods_as_text),
        cmocka_unit_test(test_wrong_calendars_say_where),
        cmocka_unit_test(test_next_of_calendars),
        cmocka_unit_test(test_what_never_comes),
        cmocka_unit_test(test_next_is_the_first_that_matches),
        cmocka_unit_test(test_periods_count_from_the_beginning),
        cmocka_unit_test(test_shortest_gap),
        cmocka_unit_test(test_hosts_begin_one_after_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
