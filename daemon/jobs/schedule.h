/* Recurring jobs: when they are due.  Pure: the time comes in.
 *
 * A schedule either has a period, "every": "6h", counted from when it was made, or a
 * calendar, five fields in UTC as crontab(5) has them:
 *
 *   minute 0-59 · hour 0-23 · day of the month 1-31 · month 1-12 · day of the week 0-6
 *
 * A field is * or a list of numbers and ranges: 0,30 or 1-5; a step follows a slash:
 * 0-59/10.  0 and 7 are Sunday.  It is a strict subset: no names, and either days of the
 * month or days of the week, since programs disagree about what both together mean. */
#ifndef DAEMON_JOBS_SCHEDULE_H
#define DAEMON_JOBS_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/base/id.h"

enum {
    SCHEDULE_NAME_SIZE = 64,
    SCHEDULE_WHEN_SIZE = 128,
    SCHEDULE_LEAST_SECONDS = 60,
    SCHEDULE_MOST_SECONDS = 366 * 24 * 3600,
    SCHEDULE_SPREAD_MOST_SECONDS = 6 * 3600,
    SCHEDULE_PROBLEM_SIZE = 320,
    SCHEDULES_MAX = 1000
};

/* A calendar as sets of bits: bit n is minute, hour, day, month or weekday n. */
struct calendar {
    uint64_t minutes;
    uint32_t hours, days, months, weekdays;
};

struct schedule {
    char id[ID_SIZE];
    char name[SCHEDULE_NAME_SIZE];
    int64_t every_seconds;                  /* 0: it has a calendar */
    char calendar_text[SCHEDULE_WHEN_SIZE]; /* as it was given; "": it has a period */
    struct calendar calendar;
    int spread_seconds; /* over which the hosts of a job begin; -1: as schedule_spread */
    bool paused;
    int64_t created_ms;     /* where the periods are counted from */
    int64_t next_ms;        /* when it is due; kept also while it is paused */
    int64_t jobs;           /* that it made */
    int64_t skipped;        /* times that it was due while its last job was open */
    int64_t last_ms;        /* when it was last due, and a job was made; 0: never */
    char last_job[ID_SIZE]; /* "": none */
    char
        problem[SCHEDULE_PROBLEM_SIZE]; /* why no job was made when it was last due; "" */
    int64_t problem_ms;
    bool damaged;  /* its row is not what was stored: it makes no job */
    char *request; /* of its jobs, JSON, canonical; freed by schedule_release */
};

void schedule_release(struct schedule *schedule);

/* "90m", "6h", "1d", "2w" as seconds; 0 for any other text, which is wrong at RET_COLUMN,
 * from 1. */
int64_t schedule_parse_every(const char *text, int *ret_column);

/* SECONDS in the largest unit that fits, as schedule_parse_every reads it. */
void schedule_format_every(int64_t seconds, char ret_text[SCHEDULE_WHEN_SIZE]);

/* ERR_INVALID: the message says what is wrong, and RET_COLUMN (from 1) where. */
enum err_code calendar_parse(const char *text, struct calendar *ret_calendar,
                             int *ret_column, struct err *err);

/* The first time later than AFTER_MS at which SCHEDULE is due, whether it is paused or
 * not; 0: never within the next 28 years, after which a calendar repeats (but for the
 * years 2100, 2200 …). */
int64_t schedule_next(const struct schedule *schedule, int64_t after_ms);

/* The shortest time between two that follow each other, of the next thousand after
 * AFTER_MS. INT64_MAX: there are no two. */
int64_t schedule_gap_ms(const struct schedule *schedule, int64_t after_ms);

/* How long after a job of SCHEDULE was made the runs of HOST may begin, in ms: less than
 * the spread, which is, where none was given, a tenth of GAP_MS and ten minutes at most;
 * and 0 where the job has one host only.  The same for a host each time, and other for
 * other schedules. */
int64_t schedule_delay_ms(const struct schedule *schedule, const char *host, int hosts,
                          int64_t gap_ms);

#endif
