/* What surveys on GPUs measured last, for what they are to measure next
 * (daemon/jobs/larger.h). */
#ifndef DB_RECURRING_LARGER_ROWS_H
#define DB_RECURRING_LARGER_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/case.h"

struct tx;

/* Surveys that are looked at: the newest. */
enum { LARGER_JOBS_MAX = 256 };

/* How many of them are over, and when the last was: changes when one is. */
struct larger_mark {
    int64_t ended, last_ms;
};
enum err_code larger_mark_read(struct tx *tx, struct larger_mark *ret_mark,
                               struct err *err);

/* An item of such a survey, without options, with seed 1, on a device of backend cuda. */
struct larger_row {
    int64_t job;              /* number: the larger, the newer */
    bool finished, cancelled; /* the job */
    char device[CASE_TITLE_SIZE], stack[CASE_NAME_SIZE];
    struct case_key key;
    int64_t run_ms;       /* device time of one of its runs; 0: none answered */
    int64_t memory_bytes; /* of the device; 0: unknown */
};

/* The newest job first.  ROW is borrowed by VISIT for the call. */
enum err_code larger_each_row(struct tx *tx,
                              void (*visit)(void *arg, const struct larger_row *row),
                              void *arg, struct err *err);

#endif
