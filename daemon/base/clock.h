/* Time.  Wall time is for people and the database (milliseconds since 1970, UTC);
 * monotonic time is for durations and deadlines.  Code that decides anything takes `now`
 * as a parameter, so that tests need no clock. */
#ifndef DAEMON_BASE_CLOCK_H
#define DAEMON_BASE_CLOCK_H

#include <stdint.h>

enum { CLOCK_RFC3339_SIZE = 25 }; /* "2026-11-21T10:45:00.123Z" and the NUL */

int64_t clock_wall_ms(void);
int64_t clock_monotonic_ms(void);
int64_t clock_monotonic_ns(void);

/* Writes WALL_MS as RFC 3339 in UTC with milliseconds. */
void clock_rfc3339(int64_t wall_ms, char ret_text[CLOCK_RFC3339_SIZE]);

/* Parses RFC 3339 ("2026-11-21T10:45:00Z", optional fraction, "Z" or "+hh:mm").
 * Returns 0, or -1 if TEXT is anything else. */
int clock_parse_rfc3339(const char *text, int64_t *ret_wall_ms);

#endif
