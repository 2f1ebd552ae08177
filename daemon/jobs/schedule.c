#include "daemon/jobs/schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/array.h"
#include "daemon/base/hash.h"
#include "daemon/jobs/case.h"

enum { MINUTE = 60, HOUR = 3600, DAY = 24 * 3600, WEEK = 7 * DAY };
enum {
    EVERY_DIGITS = 6,
    HORIZON_DAYS = 28 * 366,
    GAPS_LOOKED_AT = 1000,
    SPREAD_USUAL_MS = 600 * 1000
};

static const struct {
    char letter;
    int seconds;
} units[] = { { 'w', WEEK }, { 'd', DAY }, { 'h', HOUR }, { 'm', MINUTE } };

void schedule_release(struct schedule *s)
{
    free(s->request);
    s->request = NULL;
}

int64_t schedule_parse_every(const char *text, int *ret_column)
{
    int64_t number = 0;
    int at = 0;

    while (text[at] >= (at ? '0' : '1') && text[at] <= '9' && at < EVERY_DIGITS) {
        number = 10 * number + (text[at++] - '0');
    }
    *ret_column = at + 1;
    for (int i = 0; i < COUNT_OF(units) && at > 0; i++) {
        if (text[at] == units[i].letter) {
            *ret_column = at + 2;
            return text[at + 1] == '\0' ? number * units[i].seconds : 0;
        }
    }
    return 0;
}

void schedule_format_every(int64_t seconds, char ret_text[SCHEDULE_WHEN_SIZE])
{
    int i = 0;

    while (i < COUNT_OF(units) - 1 && seconds % units[i].seconds != 0) {
        i++;
    }
    snprintf(ret_text, SCHEDULE_WHEN_SIZE, "%" PRId64 "%c", seconds / units[i].seconds,
             units[i].letter);
}

/* Calendars */

struct field {
    const char *name;
    int least, most;
};

static const struct field fields[] = { { "minute", 0, 59 },
                                       { "hour", 0, 23 },
                                       { "day of the month", 1, 31 },
                                       { "month", 1, 12 },
                                       { "day of the week", 0, 7 } };
enum { FIELDS = COUNT_OF(fields), FIELD_DAYS = 2, FIELD_WEEKDAYS = 4 };

/* Reads on in TEXT from AT. */
struct reader {
    const char *text;
    int at;
    struct err *err;
    bool failed;
};

static void fail(struct reader *r, const char *what, const struct field *field)
{
    if (!r->failed) {
        err_set(r->err, ERR_INVALID, "%s (%s, %d-%d)", what, field->name, field->least,
                field->most);
        r->failed = true;
    }
}

static int read_number(struct reader *r, const struct field *field)
{
    int first = r->at;
    int number = 0;

    while (r->text[r->at] >= '0' && r->text[r->at] <= '9' && r->at - first < 3) {
        number = 10 * number + (r->text[r->at++] - '0');
    }
    if (r->at == first) {
        fail(r, "a number or * is expected", field);
    } else if (number < field->least || number > field->most) {
        r->at = first;
        fail(r, "the number is out of bounds", field);
    }
    return number;
}

static int read_step(struct reader *r, const struct field *field)
{
    struct field steps = { field->name, 1, field->most };

    if (r->text[r->at] != '/') {
        return 1;
    }
    r->at++;
    return read_number(r, &steps);
}

/* "*", "5" or "1-5", and a step. */
static uint64_t read_range(struct reader *r, const struct field *field)
{
    int first = field->least;
    int last = field->most;
    int step;
    uint64_t set = 0;

    if (r->text[r->at] == '*') {
        r->at++;
        step = read_step(r, field);
    } else {
        int begin = r->at;

        first = read_number(r, field);
        last = first;
        if (!r->failed && r->text[r->at] == '-') {
            r->at++;
            last = read_number(r, field);
            if (!r->failed && last < first) {
                r->at = begin;
                fail(r, "the range ends before it begins", field);
            }
        }
        step = r->failed ? 1 : read_step(r, field);
    }
    for (int i = first; !r->failed && i <= last; i += step) {
        set |= (uint64_t)1 << i;
    }
    return set;
}

static uint64_t read_field(struct reader *r, const struct field *field)
{
    uint64_t set = read_range(r, field);

    while (!r->failed && r->text[r->at] == ',') {
        r->at++;
        set |= read_range(r, field);
    }
    if (!r->failed && r->text[r->at] != ' ' && r->text[r->at] != '\0') {
        fail(r, "this is not understood here", field);
    }
    return set;
}

enum err_code calendar_parse(const char *text, struct calendar *ret_calendar,
                             int *ret_column, struct err *err)
{
    struct reader r = { .text = text, .err = err };
    uint64_t sets[FIELDS] = { 0 };
    bool all[FIELDS] = { false };

    for (int i = 0; i < FIELDS && !r.failed; i++) {
        int before = r.at;

        while (text[r.at] == ' ') {
            r.at++;
        }
        if (i > 0 && r.at == before) {
            err_set(err, ERR_INVALID, "the %s is missing: five fields are expected",
                    fields[i].name);
            r.failed = true;
            break;
        }
        all[i] = text[r.at] == '*' && (text[r.at + 1] == ' ' || text[r.at + 1] == '\0');
        sets[i] = read_field(&r, &fields[i]);
    }
    while (!r.failed && text[r.at] == ' ') {
        r.at++;
    }
    if (!r.failed && text[r.at] != '\0') {
        err_set(err, ERR_INVALID, "there are more than five fields");
        r.failed = true;
    }
    if (!r.failed && !all[FIELD_DAYS] && !all[FIELD_WEEKDAYS]) {
        r.at = 0;
        err_set(err, ERR_INVALID,
                "days of the month and days of the week are both given: make two "
                "schedules, one of them \"*\" in each");
        r.failed = true;
    }
    *ret_column = r.at + 1;
    *ret_calendar = (struct calendar){
        .minutes = sets[0],
        .hours = (uint32_t)sets[1],
        .days = (uint32_t)sets[2],
        .months = (uint32_t)sets[3],
        .weekdays = (uint32_t)((sets[4] | sets[4] >> 7) & 0x7f),
    };
    return r.failed ? ERR_INVALID : ERR_OK;
}

static bool has(uint64_t set, int bit)
{
    return (set >> bit & 1) != 0;
}

static bool day_is_due(const struct calendar *c, int64_t day)
{
    time_t seconds = (time_t)(day * DAY);
    struct tm tm;

    gmtime_r(&seconds, &tm);
    return has(c->months, tm.tm_mon + 1) && has(c->days, tm.tm_mday) &&
           has(c->weekdays, tm.tm_wday);
}

/* The first minute of the day from FROM on that is due, or -1. */
static int minute_of_day(const struct calendar *c, int from)
{
    for (int m = from; m < DAY / MINUTE; m++) {
        if (has(c->hours, m / 60) && has(c->minutes, m % 60)) {
            return m;
        }
    }
    return -1;
}

static int64_t calendar_next(const struct calendar *c, int64_t after_ms)
{
    int64_t minute = after_ms / (MINUTE * 1000) + 1;
    int64_t first = minute / (DAY / MINUTE);

    for (int64_t day = first; day < first + HORIZON_DAYS; day++) {
        int from = day == first ? (int)(minute % (DAY / MINUTE)) : 0;
        int due = day_is_due(c, day) ? minute_of_day(c, from) : -1;

        if (due >= 0) {
            return (day * DAY + (int64_t)due * MINUTE) * 1000;
        }
    }
    return 0;
}

int64_t schedule_next(const struct schedule *s, int64_t after_ms)
{
    int64_t every = s->every_seconds * 1000;

    if (every == 0) {
        return calendar_next(&s->calendar, after_ms);
    }
    if (after_ms < s->created_ms - every) { /* it was made while the clock was ahead */
        return s->created_ms - (s->created_ms - after_ms - 1) / every * every;
    }
    if (after_ms < s->created_ms) {
        return s->created_ms + every;
    }
    return s->created_ms + ((after_ms - s->created_ms) / every + 1) * every;
}

int64_t schedule_gap_ms(const struct schedule *s, int64_t after_ms)
{
    int64_t at = schedule_next(s, after_ms);
    int64_t gap = INT64_MAX;

    if (s->every_seconds) {
        return s->every_seconds * 1000;
    }
    for (int i = 0; i < GAPS_LOOKED_AT && at; i++) {
        int64_t next = schedule_next(s, at);

        gap = next && next - at < gap ? next - at : gap;
        at = next;
    }
    return gap;
}

int64_t schedule_delay_ms(const struct schedule *s, const char *host, int hosts,
                          int64_t gap_ms)
{
    int64_t usual = gap_ms / 10 < SPREAD_USUAL_MS ? gap_ms / 10 : SPREAD_USUAL_MS;
    int64_t spread = s->spread_seconds < 0 ? usual : (int64_t)s->spread_seconds * 1000;
    char text[ID_SIZE + CASE_TITLE_SIZE];
    uint64_t hash;

    snprintf(text, sizeof text, "%s%s", s->id, host);
    hash = hash_bytes(text, strlen(text));
    return hosts < 2 || spread == 0 ? 0
                                    : (int64_t)((hash ^ hash >> 32) % (uint64_t)spread);
}
