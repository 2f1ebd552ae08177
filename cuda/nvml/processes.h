/* Which processes use a GPU, or a MIG instance, and are neither this process nor started
 * by whoever started it: others' work, which load, clocks and memory of the device depend
 * on.
 *
 * Unverified on real hardware: written by NVIDIA's reference, tested with an imitation.
 */
#ifndef CUDA_NVML_PROCESSES_H
#define CUDA_NVML_PROCESSES_H

#include <stdbool.h>

#include "cuda/nvml/api.h"
#include "cuda/nvml/fact.h"
#include "workloads/worker/emit.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { NVML_PROCESSES_MAX = 64, NVML_PROCESSES_SHOWN = 8 };

struct nvml_processes {
    char uuid[FACT_TEXT_SIZE];
    bool known;                  /* all of them could be listed */
    char cause[NVML_CAUSE_SIZE]; /* why not */
    int total;                   /* that were listed */
    int count;                   /* that are here */
    unsigned pids[NVML_PROCESSES_MAX];
};

/* Those of the device UUID; like nvml_telemetry_read. */
void nvml_processes_read(const char *uuid, int deadline_ms,
                         struct nvml_processes *ret_processes);

/* Whether this process is among them: where it is not although it uses the device, they
 * are those of another PID namespace, and whose they are cannot be told. */
bool nvml_processes_have_self(const struct nvml_processes *processes);

/* Adds an array KEY of the foreign ones, "1234 python3", to the open object: at most
 * NVML_PROCESSES_SHOWN, then "and 3 more".  Nothing where they are not known; *RET_CAUSE
 * (of NVML_CAUSE_SIZE, may be NULL) says why, "" otherwise. */
void nvml_emit_foreign(struct emit *emit, const char *key,
                       const struct nvml_processes *processes, char *ret_cause);

/* One line for all devices that NVML lists: {"v":1,"devices":[{"id","foreign","cause"}],
 * "cause"}.  Adds to the open object. */
void nvml_emit_processes(struct emit *emit);

#ifdef __cplusplus
}
#endif

#endif
