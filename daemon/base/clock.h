/* Time.  Wall time is for people and the database (milliseconds since 1970, UTC);
 * monotonic time is for durations and deadlines.  Code that decides anything takes `now`
 * as a parameter, so that tests need no clock.
 *
 * Wall time never goes back, and never jumps: where the system's clock is set, this one
 * follows it at half or at twice the speed of time, until they agree again.  So what
 * ended after it began is stored so, and nothing seems more than twice as old as it is.
 * Any thread. */
#ifndef DAEMON_BASE_CLOCK_H
#define DAEMON_BASE_CLOCK_H

#include <stdint.h>

enum { CLOCK_RFC3339_SIZE = 25 }; /* "2026-11-21T10:45:00.123Z" and the NUL */

int64_t clock_wall_ms(void);

/* How far the system's clock is ahead of clock_wall_ms; negative: behind it. */
int64_t clock_wall_ahead_ms(void);

/* Wall time is WALL_MS now, unless it is later already: for what is on record. */
void clock_wall_at_least(int64_t wall_ms);

/* Where time comes from, nanoseconds; NULL: the system.  For tests: wall time begins
 * anew. */
struct clock_source {
    int64_t (*wall_ns)(void);
    int64_t (*steady_ns)(void); /* also while the system sleeps */
};
void clock_set_source(const struct clock_source *source);

int64_t clock_monotonic_ms(void);
int64_t clock_monotonic_ns(void);

/* Writes WALL_MS as RFC 3339 in UTC with milliseconds. */
void clock_rfc3339(int64_t wall_ms, char ret_text[CLOCK_RFC3339_SIZE]);

/* How many days MONTH (1 to 12) of YEAR has. */
int clock_days(int year, int month);

/* Parses RFC 3339 ("2026-11-21T10:45:00Z", optional fraction, "Z" or "+hh:mm").
 * Returns 0, or -1 if TEXT is anything else. */
int clock_parse_rfc3339(const char *text, int64_t *ret_wall_ms);

#endif
