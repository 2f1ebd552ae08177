/* How a run ended: one table from what the agent did to the process, how the process
 * ended and what it said, to an outcome. */
#ifndef DAEMON_RUN_RUN_JUDGE_H
#define DAEMON_RUN_RUN_JUDGE_H

#include "daemon/jobs/outcome.h"
#include "daemon/process/run_exit.h"
#include "daemon/run/run_fold.h"

/* In this order: what the agent did (timeout, cancelled, flood, stuck); a signal; a
 * worker that could not be started; the first deviation; no end event; an exit status
 * after the end event; and only then what the end event says.  ret_cause is "" for
 * completed. */
enum outcome run_judge(const struct run_fold *fold, const struct run_exit *exit,
                       char ret_cause[RUN_FOLD_CAUSE_SIZE]);

#endif
