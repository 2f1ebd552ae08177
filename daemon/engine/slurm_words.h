/* What states of Slurm mean for a host: whether its agent may be started, how far its job
 * is, and why it ended.  Pure.
 *
 * What nobody knows is never taken for good: a state that is not listed here keeps the
 * host from being used. */
#ifndef DAEMON_ENGINE_SLURM_WORDS_H
#define DAEMON_ENGINE_SLURM_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/engine/slurm_read.h"

enum { SLURM_CAUSE_SIZE = 320 };

/* Why nothing is to be started on NODE: "slurm: drained: flaky ECC"; "": it may be.  A
 * host of ours with a RESERVATION of its own is not kept away by reserved nodes. */
void slurm_node_held(const struct slurm_node *node, bool reservation,
                     char ret_cause[SLURM_CAUSE_SIZE]);

enum slurm_phase {
    SLURM_WAITS,  /* it is in the queue */
    SLURM_RUNS,   /* or one cannot tell: it is not known to have ended */
    SLURM_ENDING, /* its processes are being ended, and why is not said yet */
    SLURM_ENDED
};
enum slurm_phase slurm_job_phase(const struct slurm_job *job);

/* "slurm: job 17 waits: Priority". */
void slurm_job_waits(const struct slurm_job *job, char ret_words[SLURM_CAUSE_SIZE]);

/* Why a job that ended did so, where that is not the agent's own doing: "slurm: node
 * failure of n1 (job 17)"; "": it is. */
void slurm_job_cause(const struct slurm_job *job, char ret_cause[SLURM_CAUSE_SIZE]);

/* How long to wait before Slurm is asked again, from how long it was waited before: twice
 * as long where asking FAILED or took more than half of PERIOD_MS, up to thirty times
 * that; else PERIOD_MS. */
int64_t slurm_pace(int64_t period_ms, int64_t before_ms, bool failed, int64_t took_ms);

#endif
