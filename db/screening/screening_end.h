/* The end of a screening.  Private to db/. */
#ifndef DB_SCREENING_SCREENING_END_H
#define DB_SCREENING_SCREENING_END_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/evidence/screening.h"

struct tx;

/* SCREENING, if it is not over, has OUTCOME now, with an event.  COUNTS may be NULL. */
enum err_code screening_end(struct tx *tx, int64_t screening,
                            enum screening_outcome outcome, const char *cause,
                            const struct screening_counts *counts, int64_t now_ms,
                            struct err *err);

#endif
