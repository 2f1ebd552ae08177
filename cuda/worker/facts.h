/* What the CUDA backend reports about itself; see struct backend for the first three. */
#ifndef CUDA_WORKER_FACTS_H
#define CUDA_WORKER_FACTS_H

#include "cuda/kernels/kernel.h"
#include "workloads/worker/emit.h"

enum { VERSION_SIZE = 32 };

void facts_emit_environment(struct emit *emit, const struct run *run);
void facts_emit_probe(struct emit *emit);
void facts_emit_telemetry(struct emit *emit, const struct run *run);

/* "13.0": the CUDA version of the runtime that is linked in. */
void facts_runtime_version(char ret_version[VERSION_SIZE]);

/* The newest CUDA version that the user-mode driver (libcuda.so.1) serves; false when
 * there is no driver. */
bool facts_driver_api_version(char ret_version[VERSION_SIZE]);

/* The profile of a MIG slice, "1g.10gb", which the driver puts into its name; NULL for a
 * whole GPU.  Borrowed from PROPERTIES. */
const char *facts_mig_profile(const cudaDeviceProp *properties);

#endif
