/* All runs of a case must compute from the same inputs, whatever the variant, device or
 * environment.  Private to db/. */
#ifndef DB_RUNS_INPUT_H
#define DB_RUNS_INPUT_H

#include "daemon/base/err.h"

struct run_record;
struct tx;

/* The input digest of the first completed run of (workload, version, size, dtype, seed)
 * is stored; a later completed RUN with another one becomes `invalid`, with a cause that
 * names both digests and both runs. */
enum err_code runs_check_input(struct tx *tx, struct run_record *run, struct err *err);

#endif
