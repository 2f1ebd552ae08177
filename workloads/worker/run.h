/* The worker's side of struct run: how a run comes to be, and what its tensors add up to.
 * The hooks' side is in workloads/workload.h. */
#ifndef WORKLOADS_WORKER_RUN_H
#define WORKLOADS_WORKER_RUN_H

#include "workloads/instruments/digest.h"
#include "workloads/worker/args.h"
#include "workloads/worker/backend.h"
#include "workloads/worker/ending.h"
#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* RUN becomes the run that ARGS (of --run, --check or --resume) asks for; nothing happens
 * yet. */
void run_init(struct run *run, const struct args *args, const struct backend *backend);

/* Opens the device, asks the variant whether it can do the case, starts the run's load,
 * and calls setup. */
void run_prepare(struct run *run);

/* Ends the run's load and calls the workload's teardown, if it has one. */
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

#ifdef __cplusplus
}
#endif

#endif
