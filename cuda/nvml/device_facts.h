/* What the CUDA backend adds to its events from NVML: what is known and CUDA itself does
 * not say, and where NVML failed the reason.  Nothing here waits for a driver that hangs
 * (session.h). */
#ifndef CUDA_NVML_DEVICE_FACTS_H
#define CUDA_NVML_DEVICE_FACTS_H

#include "workloads/worker/emit.h"

struct nvml_telemetry;

#ifdef __cplusplus
extern "C" {
#endif

/* Adds "nvml" to the open object "versions". */
void nvml_emit_versions(struct emit *emit);

/* Adds "driver", its version, to the open object if NVML tells it. */
void nvml_emit_driver(struct emit *emit);

/* Adds the facts of the device UUID to its open object "attributes": serial, modes, MIG
 * instances …, and in "health" what changes by itself: error counters and remapped rows,
 * or "cause", why there is nothing to tell. */
void nvml_emit_device_attributes(struct emit *emit, const char *uuid);

/* Adds a sample of the device UUID, taken now, to the open object "telemetry", or
 * "cause" (workloads/worker/backend.h: emit_telemetry). */
void nvml_emit_telemetry(struct emit *emit, const char *uuid);

/* A sample that was taken before, likewise. */
void nvml_emit_sample(struct emit *emit, const struct nvml_telemetry *telemetry);

#ifdef __cplusplus
}
#endif

#endif
