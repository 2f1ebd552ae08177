/* The devices of a host with MIG slices, of which CUDA shows a process one (visible.h).
 * Each is asked for by a process that sees nothing else, as a run on it will: what is
 * here is what CUDA says of it, and a device that CUDA does not show even so is none.
 *
 * Unverified on real hardware: tested on the simulator, which behaves as documented. */
#ifndef CUDA_WORKER_SLICES_H
#define CUDA_WORKER_SLICES_H

#include "cuda/kernels/kernel.h"
#include "cuda/worker/device.h"

struct slice {
    cudaDeviceProp properties;
    enum compute_mode mode;
};

/* All that CUDA_VISIBLE_DEVICES allows, those among them that CUDA lists by itself, too;
 * none where no GPU is in MIG mode, or NVML cannot tell.  To be called before anything of
 * CUDA is.  The log says which of them did not answer in time.  Returns how many; they
 * live until the process ends. */
int slices_read(const struct slice **ret_slices);

/* Where there is no device: that a GPU is in MIG mode and has no slice, and what to do;
 * NULL where the host has slices or other GPUs, so that it is not why. */
const char *slices_cause(void);

/* Whether NVML, which lists the others, could not be asked. */
bool slices_are_unknown(void);

#endif
