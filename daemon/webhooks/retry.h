/* When a delivery that failed is tried again, and when it is given up.  Pure. */
#ifndef DAEMON_WEBHOOKS_RETRY_H
#define DAEMON_WEBHOOKS_RETRY_H

#include <stdbool.h>
#include <stdint.h>

enum {
    RETRY_ATTEMPTS_MAX = 12,            /* then it is a dead letter: 25 h, by default */
    RETRY_LONGEST_MS = 6 * 3600 * 1000, /* wait, before it is spread */
    RETRY_AFTER_MOST_MS = 24 * 3600 * 1000,
    RETRY_GIVE_UP_MS = 24 * 3600 * 1000, /* nothing got through for so long: what is
                                            older is given up, … */
    RETRY_GIVE_UP_FAILURES = 12,       /* … after so many tries in a row: a service that
                                          was off for days has not tried for days */
    RETRY_HOLD_MOST_MS = 5 * 60 * 1000 /* between two tries at a receiver that fails */
};

/* How long to wait after the try ATTEMPTS (1 …) failed: FIRST_MS, four times as long each
 * time, up to RETRY_LONGEST_MS, and a fifth less or more by RANDOM. */
int64_t retry_wait_ms(int attempts, int64_t first_ms, uint64_t random);

/* How long nothing at all is sent to a receiver after FAILURES (1 …) tries in a row
 * failed: FIRST_MS, from the third on twice as long each time, up to RETRY_HOLD_MOST_MS.
 * So one that fails often, but not always, still gets on. */
int64_t retry_hold_ms(int failures, int64_t first_ms, uint64_t random);

/* What Retry-After (RFC 9110, 10.2.3) asks for at NOW_MS (wall clock), at most
 * RETRY_AFTER_MOST_MS; 0: nothing, or nothing that can be read. */
int64_t retry_after_ms(const char *value, int64_t now_ms);

/* What a status means. */
bool retry_delivered(int status); /* 2xx */
bool retry_gone(int status);      /* 410: nothing is to be sent there any more */

#endif
