/* When a schedule is due: a period and a calendar, both of the same text. */
#include <string.h>
#include <time.h>

#include "daemon/jobs/schedule.h"
#include "tests/fuzz/fuzz.h"

enum { MINUTE_MS = 60 * 1000, SOON_DAYS = 40 };
static const int64_t now_ms = 1795518000123; /* some time in 2026 */

/* The same in words is the same. */
static void check_every(const char *text)
{
    int column;
    int64_t seconds = schedule_parse_every(text, &column);
    char again[SCHEDULE_WHEN_SIZE];
    struct schedule s = { .created_ms = now_ms, .every_seconds = seconds };

    if (seconds == 0) {
        return;
    }
    FUZZ_CHECK(seconds > 0 && seconds % 60 == 0);
    schedule_format_every(seconds, again);
    FUZZ_CHECK(schedule_parse_every(again, &column) == seconds);
    FUZZ_CHECK(schedule_next(&s, now_ms) == now_ms + seconds * 1000);
    FUZZ_CHECK(schedule_next(&s, now_ms + 1) == now_ms + seconds * 1000);
    FUZZ_CHECK(schedule_gap_ms(&s, now_ms) == seconds * 1000);
}

static bool has(uint64_t set, int bit)
{
    return (set >> bit & 1) != 0;
}

/* Due at a minute that the calendar has, later than before, and a spread within bounds.
 */
static void check_calendar(const struct schedule *s)
{
    const struct calendar *c = &s->calendar;
    int64_t after_ms = now_ms;

    for (int i = 0; i < 4; i++) {
        int64_t at = schedule_next(s, after_ms);
        time_t seconds = (time_t)(at / 1000);
        struct tm tm;

        if (at == 0) {
            return;
        }
        FUZZ_CHECK(at > after_ms && at % MINUTE_MS == 0);
        FUZZ_CHECK(schedule_next(s, at - 1) == at);
        gmtime_r(&seconds, &tm);
        FUZZ_CHECK(has(c->minutes, tm.tm_min) && has(c->hours, tm.tm_hour));
        FUZZ_CHECK(has(c->days, tm.tm_mday) && has(c->months, tm.tm_mon + 1));
        FUZZ_CHECK(has(c->weekdays, tm.tm_wday));
        after_ms = at;
    }
    if (after_ms - now_ms < (int64_t)SOON_DAYS * 24 * 3600 * 1000) { /* else it is slow */
        int64_t gap = schedule_gap_ms(s, now_ms);
        int64_t delay = schedule_delay_ms(s, "a", 2, gap);

        FUZZ_CHECK(gap >= MINUTE_MS && delay >= 0 && delay < gap);
        FUZZ_CHECK(schedule_delay_ms(s, "a", 1, gap) == 0);
    }
}

static void run(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct schedule s = { .id = "0", .spread_seconds = -1 };
    struct err err = { .message = "" };
    int column = 0;

    check_every(text);
    if (calendar_parse(text, &s.calendar, &column, &err) == ERR_OK) {
        check_calendar(&s);
    } else {
        FUZZ_CHECK(err.message[0] && column >= 1 && (size_t)column <= strlen(text) + 1);
    }
    free(text);
}

FUZZ_TARGET("calendar", run);
