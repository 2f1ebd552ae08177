/* What the CPU backend reports about itself; see struct backend for each. */
#ifndef WORKLOADS_WORKER_CPU_FACTS_H
#define WORKLOADS_WORKER_CPU_FACTS_H

#include "workloads/worker/emit.h"
#include "workloads/workload.h"

/* "cpu:" and the host name. */
const char *cpu_facts_device_id(void);

void cpu_facts_emit_environment(struct emit *emit, const struct run *run);
void cpu_facts_emit_probe(struct emit *emit);

#endif
