/* The facts that WORKLOAD_FACT_REGISTER put into this program. */
#ifndef WORKLOADS_WORKER_FACTS_H
#define WORKLOADS_WORKER_FACTS_H

#include "workloads/worker/emit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds a string for each fact of BACKEND that has something to say, to the open object.
 */
void facts_emit(struct emit *emit, const char *backend);

/* Adds "problems":{name: why its library cannot be used, …} for the facts of BACKEND that
 * have one. */
void facts_emit_problems(struct emit *emit, const char *backend);

#ifdef __cplusplus
}
#endif

#endif
