/* Stored runs whose sums are infinite: they completed for programs that did not refuse
 * it. Private to db/. */
#ifndef DB_UPKEEP_INFINITE_H
#define DB_UPKEEP_INFINITE_H

#include <stdint.h>

#include "daemon/base/err.h"

struct tx;

/* Makes completed runs with an infinite weight sum or loss invalid, and what was counted
 * from them follows: cells, failures of jobs, the inputs of their cases.  Damaged rows
 * stay what they are.  In a transaction of its own, which reads every run: only if cells
 * were judged by other rules than VERDICT_RULES, so before cells_judge_outdated. */
enum err_code infinite_runs_refuse_outdated(struct tx *tx, int64_t now_ms,
                                            struct err *err);

#endif
