/* What the sensors and counters of one GPU say now. */
#ifndef CUDA_NVML_TELEMETRY_H
#define CUDA_NVML_TELEMETRY_H

#include "cuda/nvml/api.h"
#include "cuda/nvml/fact.h"

struct nvml_telemetry {
    char uuid[FACT_TEXT_SIZE];      /* of the GPU, or of a MIG instance on it */
    char cause[NVML_CAUSE_SIZE];    /* why the device could not be read; "": it could */
    struct fact sm_mhz, memory_mhz; /* clocks */
    struct fact celsius;            /* of the GPU */
    struct fact milliwatts;         /* of the board */
    struct fact throttle;           /* bits, see nvml_throttle_name */
    struct nvml_ecc since_load, in_life;
    struct fact remap_pending, remap_failure;
};

/* A sample of the device UUID.  Whatever happens it fills ret_telemetry, at worst with a
 * cause alone, and returns soon after DEADLINE_MS at the latest. */
void nvml_telemetry_read(const char *uuid, int deadline_ms,
                         struct nvml_telemetry *ret_telemetry);

/* The name of bit BIT (0 to 63) of `throttle`; NULL when it has none here. */
const char *nvml_throttle_name(int bit);

#endif
