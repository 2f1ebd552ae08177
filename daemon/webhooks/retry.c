#include "daemon/webhooks/retry.h"

#include <string.h>
#include <time.h>

#include "daemon/base/array.h"

enum { FACTOR = 4, HOLD_FACTOR = 2, HOLD_PATIENT = 3, SECONDS_DIGITS_MOST = 9 };

/* Four fifths to six fifths. */
static int64_t spread(int64_t ms, uint64_t random)
{
    return ms * 4 / 5 + (int64_t)(random % (uint64_t)(ms * 2 / 5 + 1));
}

static int64_t grown(int times, int64_t first_ms, int factor, int64_t most_ms)
{
    int64_t ms = first_ms;

    for (int i = 1; i < times && ms < most_ms; i++) {
        ms *= factor;
    }
    return ms < most_ms ? ms : most_ms;
}

int64_t retry_wait_ms(int attempts, int64_t first_ms, uint64_t random)
{
    return spread(grown(attempts, first_ms, FACTOR, RETRY_LONGEST_MS), random);
}

int64_t retry_hold_ms(int failures, int64_t first_ms, uint64_t random)
{
    return spread(
        grown(failures - HOLD_PATIENT + 1, first_ms, HOLD_FACTOR, RETRY_HOLD_MOST_MS),
        random);
}

static int64_t bounded(int64_t ms)
{
    return ms < 0 ? 0 : ms < RETRY_AFTER_MOST_MS ? ms : RETRY_AFTER_MOST_MS;
}

/* All three forms of RFC 9110, 5.6.7: who reads a date must know the old ones, too. */
int64_t retry_after_ms(const char *value, int64_t now_ms)
{
    static const char *const dates[] = { "%a, %d %b %Y %H:%M:%S GMT",
                                         "%A, %d-%b-%y %H:%M:%S GMT",
                                         "%a %b %d %H:%M:%S %Y" };
    size_t digits = strspn(value, "0123456789");

    if (digits > 0 && !value[digits]) {
        return digits > SECONDS_DIGITS_MOST ? RETRY_AFTER_MOST_MS
                                            : bounded(strtoll(value, NULL, 10) * 1000);
    }
    for (int i = 0; i < COUNT_OF(dates); i++) {
        struct tm parts = { .tm_mday = 0 };
        const char *end = strptime(value, dates[i], &parts);

        if (end && !*end) {
            return bounded((int64_t)timegm(&parts) * 1000 - now_ms);
        }
    }
    return 0;
}

bool retry_delivered(int status)
{
    return status >= 200 && status < 300;
}

bool retry_gone(int status)
{
    return status == 410;
}
