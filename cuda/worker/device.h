/* The GPU of this process: chosen by UUID, opened once, and what it says about itself. */
#ifndef CUDA_WORKER_DEVICE_H
#define CUDA_WORKER_DEVICE_H

#include "cuda/kernels/kernel.h"
#include "workloads/worker/backend.h"

/* What a device's id starts with.  A simulated one can never be taken for a GPU. */
#ifdef REPROD_CUDASIM
#define DEVICE_ID_PREFIX "sim:"
#else
#define DEVICE_ID_PREFIX "GPU-"
#endif

enum { DEVICE_ID_SIZE = 64, DEVICE_CAUSE_SIZE = 384, VERSION_SIZE = 32 };

/* How many devices there are.  0, and why in ret_cause, when there is none or they cannot
 * be listed. */
int device_count(char ret_cause[DEVICE_CAUSE_SIZE]);

/* The device numbered INDEX; false when it does not say. */
bool device_read(int index, cudaDeviceProp *ret_properties);

/* Whose processes may use a GPU: nvidia-smi -c. */
enum compute_mode {
    MODE_UNKNOWN,
    MODE_DEFAULT,
    MODE_ONE_PROCESS, /* EXCLUSIVE_PROCESS: one at a time */
    MODE_PROHIBITED   /* none: such a device is no device of the probe */
};

/* Of the device numbered INDEX. */
enum compute_mode device_compute_mode(int index);

/* "exclusive_process", as the probe says it; NULL for an unknown one. */
const char *device_compute_mode_name(enum compute_mode mode);

/* The device in use serves no process beside this one. */
bool device_is_of_one_process(void);

/* "GPU-" and its UUID, or a slice's "MIG-" and its own, as nvidia-smi prints it. */
void device_id(const cudaDeviceProp *properties, char ret_id[DEVICE_ID_SIZE]);

/* Why the GPU ID, whose mode is MODE_PROHIBITED, cannot be used. */
void device_describe_prohibited(const char *id, char ret_cause[DEVICE_CAUSE_SIZE]);

/* struct backend: select and open.  A slice, or a GPU beside slices, is only shown to a
 * process that is shown nothing else (slices.h): select sets CUDA_VISIBLE_DEVICES for the
 * rest of the process, where it allows that device, or has the program begin anew. */
bool device_select(const char *id, char ret_message[BACKEND_MESSAGE_SIZE]);
void device_open(struct run *run);

/* The device in use, read back from the runtime when it was opened; NULL before. */
const cudaDeviceProp *device_opened(void);

/* Its id; "unknown" before. */
const char *device_opened_id(void);

/* An error has left the device unusable for this process: nothing more can be asked of
 * it. */
bool device_has_failed(void);

/* "13.0": the CUDA version of the runtime that is linked in. */
void device_runtime_version(char ret_version[VERSION_SIZE]);

/* The newest CUDA version that the user-mode driver (libcuda.so.1) serves; false when
 * there is no driver. */
bool device_driver_api_version(char ret_version[VERSION_SIZE]);

/* The profile of a MIG slice, "1g.10gb", which the driver puts into its name; NULL for a
 * whole GPU.  Borrowed from PROPERTIES. */
const char *device_mig_profile(const cudaDeviceProp *properties);

#endif
