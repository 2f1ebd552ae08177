/* What the CUDA backend reports about itself; see struct backend. */
#ifndef CUDA_WORKER_FACTS_H
#define CUDA_WORKER_FACTS_H

#include "workloads/worker/emit.h"

void facts_emit_environment(struct emit *emit, const struct run *run);
void facts_emit_probe(struct emit *emit);
void facts_emit_telemetry(struct emit *emit, const struct run *run);

#endif
