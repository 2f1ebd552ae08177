#include "daemon/base/clock.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t read_clock_ns(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int64_t system_wall_ns(void)
{
    return read_clock_ns(CLOCK_REALTIME);
}

static int64_t system_steady_ns(void)
{
    return read_clock_ns(CLOCK_BOOTTIME);
}

static const struct clock_source system_source = { system_wall_ns, system_steady_ns };

static struct {
    pthread_mutex_t lock;
    const struct clock_source *source;
    bool begun;
    int64_t wall_ns, steady_ns; /* as last told, and when that was */
} wall = { .lock = PTHREAD_MUTEX_INITIALIZER, .source = &system_source };

/* Under the lock: wall time now.  RET_SYSTEM_NS: what the system takes it for. */
static int64_t wall_now_ns(int64_t *ret_system_ns)
{
    int64_t steady = wall.source->steady_ns();
    int64_t now = wall.source->wall_ns();
    int64_t passed = steady - wall.steady_ns;

    *ret_system_ns = now;
    if (wall.begun) {
        int64_t least = wall.wall_ns + passed / 2;
        int64_t most = wall.wall_ns + passed * 2;

        now = now < least ? least : now > most ? most : now;
    }
    wall.begun = true;
    wall.wall_ns = now;
    wall.steady_ns = steady;
    return now;
}

int64_t clock_wall_ms(void)
{
    int64_t system;
    int64_t now;

    pthread_mutex_lock(&wall.lock);
    now = wall_now_ns(&system);
    pthread_mutex_unlock(&wall.lock);
    return now / 1000000;
}

int64_t clock_wall_ahead_ms(void)
{
    int64_t system;
    int64_t now;

    pthread_mutex_lock(&wall.lock);
    now = wall_now_ns(&system);
    pthread_mutex_unlock(&wall.lock);
    return (system - now) / 1000000;
}

void clock_wall_at_least(int64_t wall_ms)
{
    int64_t system;

    pthread_mutex_lock(&wall.lock);
    if (wall_now_ns(&system) < wall_ms * 1000000) {
        wall.wall_ns = wall_ms * 1000000;
    }
    pthread_mutex_unlock(&wall.lock);
}

void clock_set_source(const struct clock_source *source)
{
    pthread_mutex_lock(&wall.lock);
    wall.source = source ? source : &system_source;
    wall.begun = false;
    pthread_mutex_unlock(&wall.lock);
}

int64_t clock_monotonic_ms(void)
{
    return read_clock_ns(CLOCK_MONOTONIC) / 1000000;
}

int64_t clock_monotonic_ns(void)
{
    return read_clock_ns(CLOCK_MONOTONIC);
}

/* A list of hosts has thousands of times: strftime asks the locale for each. */
static void put_digits(char *to, int digits, int value)
{
    while (digits > 0) {
        to[--digits] = (char)('0' + value % 10);
        value /= 10;
    }
}

void clock_rfc3339(int64_t wall_ms, char ret_text[CLOCK_RFC3339_SIZE])
{
    time_t seconds = (time_t)(wall_ms / 1000);
    int ms = (int)(wall_ms % 1000);
    struct tm tm;

    if (ms < 0) {
        ms += 1000;
        seconds--;
    }
    if (!gmtime_r(&seconds, &tm) || tm.tm_year + 1900 > 9999 || tm.tm_year + 1900 < 0) {
        memcpy(ret_text, "0000-00-00T00:00:00.000Z", CLOCK_RFC3339_SIZE);
        return;
    }
    memcpy(ret_text, "0000-00-00T00:00:00.000Z", CLOCK_RFC3339_SIZE);
    put_digits(ret_text, 4, tm.tm_year + 1900);
    put_digits(ret_text + 5, 2, tm.tm_mon + 1);
    put_digits(ret_text + 8, 2, tm.tm_mday);
    put_digits(ret_text + 11, 2, tm.tm_hour);
    put_digits(ret_text + 14, 2, tm.tm_min);
    put_digits(ret_text + 17, 2, tm.tm_sec);
    put_digits(ret_text + 20, 3, ms);
}

/* "Z" or "+hh:mm" or "-hh:mm": the offset in minutes; -1 on anything else. */
static int parse_zone(const char *text, int *ret_minutes)
{
    int hours;
    int minutes;
    int end = 0;

    if (strcmp(text, "Z") == 0 || strcmp(text, "z") == 0) {
        *ret_minutes = 0;
        return 0;
    }
    if (text[0] != '+' && text[0] != '-') {
        return -1;
    }
    if (sscanf(text + 1, "%2d:%2d%n", &hours, &minutes, &end) != 2 || end != 5 ||
        text[1 + end] != '\0' || hours > 23 || minutes > 59) {
        return -1;
    }
    *ret_minutes = (hours * 60 + minutes) * (text[0] == '-' ? -1 : 1);
    return 0;
}

int clock_days(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return days[month - 1] + (month == 2 && leap);
}

int clock_parse_rfc3339(const char *text, int64_t *ret_wall_ms)
{
    struct tm tm = { 0 };
    char t;
    int end = 0;
    int ms = 0;
    int zone;

    if (sscanf(text, "%4d-%2d-%2d%c%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
               &t, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &end) != 7 ||
        end != 19 || (t != 'T' && t != 't' && t != ' ')) {
        return -1;
    }
    if (tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 ||
        tm.tm_mday > clock_days(tm.tm_year, tm.tm_mon) || tm.tm_hour > 23 ||
        tm.tm_min > 59 || tm.tm_sec > 60) {
        return -1;
    }
    text += end;
    if (*text == '.') {
        int scale = 100;

        for (text++; *text >= '0' && *text <= '9'; text++) {
            ms += (*text - '0') * scale;
            scale /= 10;
        }
    }
    if (parse_zone(text, &zone) != 0) {
        return -1;
    }
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    *ret_wall_ms = ((int64_t)timegm(&tm) - zone * 60) * 1000 + ms;
    return 0;
}
