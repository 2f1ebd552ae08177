/* The environment of a run: every fact inside which bit equality is expected. */
#ifndef WORKLOADS_WORKER_ENVIRONMENT_H
#define WORKLOADS_WORKER_ENVIRONMENT_H

#include "workloads/worker/emit.h"
#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds the object "environment": backend, worker_build, what the backend knows, the
 * facts below, and as "env.NAME" those environment variables that are set and by
 * which maths libraries choose their code (the list is in environment.c).  Values over
 * 256 bytes are given as "digest:" and their digest. */
void environment_emit(struct emit *emit, const struct run *run);

/* Whether NAME, LENGTH bytes long, is one of those variables. */
bool environment_is_relevant(const char *name, size_t length);

/* The facts that WORKLOAD_FACT_REGISTER put into this program: adds a string for each of
 * BACKEND that has something to say, to the open object. */
void facts_emit(struct emit *emit, const char *backend);

/* Adds "problems":{name: why its library cannot be used, …} for the facts of BACKEND that
 * have one. */
void facts_emit_problems(struct emit *emit, const char *backend);

#ifdef __cplusplus
}
#endif

#endif
