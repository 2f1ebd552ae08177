/* What the challenges (daemon/jobs/challenge.h) of a cell add up to.  Private to db/.
 *
 * How one was answered is not stored with it: it follows from its inputs and digests,
 * those of its cell, and the inputs of the case. */
#ifndef DB_CASES_CHALLENGE_COUNTS_H
#define DB_CASES_CHALLENGE_COUNTS_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/challenge.h"

struct tx;

/* What the stored challenges of CELL add up to, on DEVICE or (NULL) on all. */
enum err_code challenges_count(struct tx *tx, int64_t cell, const char *device,
                               struct challenges *ret_challenges, struct err *err);

#endif
