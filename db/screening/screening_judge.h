/* What screenings showed, once their devices are measured to the end. */
#ifndef DB_SCREENING_SCREENING_JUDGE_H
#define DB_SCREENING_SCREENING_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"

struct tx;

/* Whether one can be judged. */
enum err_code screenings_ended(struct tx *tx, bool *ret_ended, struct err *err);

/* Judges up to LIMIT of those that are measured to their end, by number, above AFTER; an
 * event "device_screened" tells each that is over.  One that is inconclusive goes on
 * while jobs that were made with its own are open, since their devices are its equals.
 * *RET_LAST: the last that was looked at, 0 if no more follow. */
enum err_code screenings_judge(struct tx *tx, int64_t after, int limit, int64_t now_ms,
                               int64_t *ret_last, struct err *err);

#endif
