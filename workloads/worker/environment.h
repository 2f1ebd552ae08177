/* The environment of a run: every fact inside which bit equality is expected. */
#ifndef WORKLOADS_WORKER_ENVIRONMENT_H
#define WORKLOADS_WORKER_ENVIRONMENT_H

#include "workloads/worker/emit.h"
#include "workloads/workload.h"

/* Adds the object "environment": backend, worker_build, what the backend knows, the
 * facts of facts.h, and as "env.NAME" those environment variables that are set and by
 * which maths libraries choose their code (the list is in environment.c).  Values over
 * 256 bytes are given as "digest:" and their digest. */
void environment_emit(struct emit *emit, const struct run *run);

/* Whether NAME, LENGTH bytes long, is one of those variables. */
bool environment_is_relevant(const char *name, size_t length);

#endif
