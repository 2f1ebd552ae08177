/* How a run ends before its work is done: what run_unsupported and run_infra
 * (workloads/workload.h), and the two below, lead to. */
#ifndef WORKLOADS_WORKER_ENDING_H
#define WORKLOADS_WORKER_ENDING_H

#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Says that RUN ended before its work was done: OUTCOME is "unsupported", "out_of_memory"
 * or "infra", CAUSE one line for people.  Returns the exit status of the process. */
typedef int run_end_cb(struct run *run, const char *outcome, const char *cause);

/* What to call when a run ends early; one for the process.  The process exits with what
 * it returns. */
void run_on_early_end(run_end_cb *on_end);

/* Ends the run with outcome out_of_memory. */
__attribute__((noreturn)) void run_out_of_memory(struct run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The workload breaks its contract: one line to stderr, then abort(). */
__attribute__((noreturn)) void run_defect(const struct run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif

#endif
