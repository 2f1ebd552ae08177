/* Further runs of a case whose devices cannot be told from a workload that varies: the
 * job that measures it goes on with the devices that dissent_judge asks for, until it can
 * be told, or each has had MORE_RUNS_MAX more.  Each environment that the job measures is
 * looked at when all devices that the job measured there had their runs, whatever is left
 * to do in others.  Private to db/. */
#ifndef DB_DISSENT_MORE_RUNS_H
#define DB_DISSENT_MORE_RUNS_H

#include "daemon/evidence/dissent.h"
#include "db/runs.h"

enum { MORE_RUNS_STEP = 3, MORE_RUNS_MAX = 21 };

/* After RUN was added to its cell, of which AGREEMENT is stored now, and before it counts
 * for its item of job JOB (a number).  Fills in the effect's `more`. */
enum err_code more_runs_ask(struct tx *tx, const struct run_record *run,
                            enum dissent_state agreement, int64_t job,
                            struct run_effect *effect, struct err *err);

#endif
