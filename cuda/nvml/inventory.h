/* What NVML tells about the GPUs of this machine and their MIG instances. */
#ifndef CUDA_NVML_INVENTORY_H
#define CUDA_NVML_INVENTORY_H

#include <stdbool.h>

#include "cuda/nvml/api.h"
#include "cuda/nvml/fact.h"

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

/* The version of the driver, "580.65.06"; unknown where NVML does not tell it within
 * DEADLINE_MS. */
struct fact_text nvml_driver_read(int deadline_ms);

/* The GPU with that UUID, or the one that has a MIG instance with it (then ret_mig is the
 * instance, else NULL).  What stands before the first '-' ("GPU", "MIG") is not compared:
 * CUDA tells sixteen bytes, and not what they name.  NULL when there is none.  Borrowed:
 * valid as long as INVENTORY. */
const struct nvml_gpu *nvml_inventory_find(const struct nvml_inventory *inventory,
                                           const char *uuid,
                                           const struct nvml_mig **ret_mig);

#endif
