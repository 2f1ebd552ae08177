/* What the CUDA backend adds to its events from NVML: what is known and CUDA itself does
 * not say, and where NVML failed the reason.  Nothing here waits for a driver that hangs
 * (session.h). */
#ifndef CUDA_NVML_DEVICE_FACTS_H
#define CUDA_NVML_DEVICE_FACTS_H

#include <stdbool.h>

#include "cuda/nvml/api.h"
#include "cuda/nvml/fact.h"
#include "workloads/worker/emit.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { NVML_GPUS_MAX = 32, NVML_MIGS_MAX = 8 };

struct nvml_mig {
    struct fact_text uuid, name;
    struct fact gpu_instance, compute_instance; /* ids within the GPU */
};

struct nvml_gpu {
    /* Why the GPU could not be read to the end: "the GPU is lost (15)".  "": it could. */
    char cause[NVML_CAUSE_SIZE];
    struct fact_text uuid, serial, name, vbios, pci_bus_id;
    struct fact persistence;             /* on or off, as the modes below */
    struct fact ecc_mode, ecc_pending;   /* now, and after the next reboot */
    struct nvml_ecc since_load, in_life; /* of the driver, of the GPU */
    struct fact remapped_correctable, remapped_uncorrectable; /* rows of memory */
    struct fact remap_pending, remap_failure;                 /* yes or no */
    struct fact mig_mode, mig_pending;
    int mig_count;
    struct nvml_mig migs[NVML_MIGS_MAX];
};

struct nvml_inventory {
    struct fact_text nvml; /* its version */
    int gpu_count;         /* how many are in `gpus`: at most NVML_GPUS_MAX */
    struct nvml_gpu gpus[NVML_GPUS_MAX];
};

/* False, with one line in ret_cause, when NVML cannot be used at all, or did not answer
 * within DEADLINE_MS. */
bool nvml_inventory_read(struct nvml_inventory *ret_inventory, int deadline_ms,
                         char ret_cause[NVML_CAUSE_SIZE]);

/* The same, read once in the life of the process, with a deadline of half a minute; NULL,
 * with the cause, when it could not be. */
const struct nvml_inventory *nvml_inventory_get(const char **ret_cause);

struct nvml_telemetry;

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
