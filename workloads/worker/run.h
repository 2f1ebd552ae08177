/* The worker's side of struct run: how a run comes to be, what its tensors add up to,
 * and how it ends early.  The hooks' side is in workloads/workload.h. */
#ifndef WORKLOADS_WORKER_RUN_H
#define WORKLOADS_WORKER_RUN_H

#include "workloads/instruments/digest.h"
#include "workloads/worker/args.h"
#include "workloads/worker/backend.h"
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

/* RUN becomes the run that ARGS (of --run, --check or --resume) asks for; nothing happens
 * yet. */
void run_init(struct run *run, const struct args *args, const struct backend *backend);

/* Opens the device, asks the variant whether it can do the case, starts the load beside
 * the run, and calls setup. */
void run_prepare(struct run *run);

/* Ends the load beside the run and calls the workload's teardown, if it has one. */
void run_finish(struct run *run);

/* Poisons every output and the loss, warms the thread team and computes iteration INDEX.
 * Returns the milliseconds of the computation alone. */
double run_compute(struct run *run, int index);

/* The digests of all inputs (as they are now) and of all outputs, in order of creation,
 * combined into one. */
struct digest run_input_digest(struct run *run);
struct digest run_output_digest(struct run *run);

/* The elements and bytes of all outputs together. */
int64_t run_output_elements(const struct run *run);
int64_t run_output_bytes(const struct run *run);

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
