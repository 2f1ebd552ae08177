/* What runs captured: the tensors that a place read and wrote.  Contents are stored once,
 * whichever runs they come from. */
#ifndef DB_CAPTURES_H
#define DB_CAPTURES_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/run.h"

struct tx;

/* All tensors together take no more than this; those beyond it are not stored. */
enum { CAPTURES_BYTES_MAX = 1 << 30 };

/* Stores the tensors of RESULT with RUN if it completed and was asked to capture, by a
 * job that was not cancelled meanwhile.  Private to db/: runs_finish calls it. */
enum err_code captures_store(struct tx *tx, const struct run_record *run,
                             const struct run_result *result, struct err *err);

/* What run ID captured, those read first, in order.  TENSOR is borrowed for the call. */
enum err_code captures_each(struct tx *tx, const char *id,
                            void (*visit)(void *arg,
                                          const struct captured_tensor *tensor),
                            void *arg, struct err *err);

/* Drops what the runs of job NUMBER captured, except the runs KEEP ("": none), and the
 * contents that no run has any more.  Private to db/. */
enum err_code captures_drop(struct tx *tx, int64_t job, const char *const keep[2],
                            struct err *err);

#endif
