/* NVML as this program uses it: declarations of its own of the few functions it needs, so
 * that no header of NVIDIA's has to be there, found in libnvidia-ml.so.1 at run time.
 *
 * Source of names, codes and layouts: NVIDIA's NVML API Reference Guide.  A driver may
 * lack any function; what is missing is one fact less, never an error. */
#ifndef CUDA_NVML_API_H
#define CUDA_NVML_API_H

#include <stdbool.h>

enum nvml_code { /* what every function returns; there are more */
                 NVML_OK = 0,
                 NVML_NOT_SUPPORTED = 3,
                 NVML_INSUFFICIENT_SIZE = 7,
                 NVML_FUNCTION_NOT_FOUND = 13,
                 NVML_GPU_IS_LOST = 15,
                 NVML_RESET_REQUIRED = 16,
};

enum { /* arguments of the functions below */
       NVML_CORRECTED = 0,
       NVML_UNCORRECTED = 1,
       NVML_VOLATILE = 0,  /* since the driver was loaded */
       NVML_AGGREGATE = 1, /* in the life of the GPU */
       NVML_CLOCK_SM = 1,
       NVML_CLOCK_MEMORY = 2,
       NVML_TEMPERATURE_GPU = 0,
};

struct nvml_handle; /* a GPU or a MIG instance, NVML's */

struct nvml_pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

struct nvml_process { /* since driver 450 */
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};
struct nvml_process_old {
    unsigned pid;
    unsigned long long memory;
};

#define NVML_LIST_OF(name)                                                               \
    X(name##_v3, (struct nvml_handle *, unsigned *, struct nvml_process *))              \
    X(name##_v2, (struct nvml_handle *, unsigned *, struct nvml_process *))              \
    X(name, (struct nvml_handle *, unsigned *, struct nvml_process_old *))
#define NVML_TEXT_OF(name)   X(name, (struct nvml_handle *, char *, unsigned))
#define NVML_NUMBER_OF(name) X(name, (struct nvml_handle *, unsigned *))

/* X(function without its prefix "nvml", parameters) */
#define NVML_FUNCTIONS                                                                   \
    X(Init_v2, (void))                                                                   \
    X(SystemGetDriverVersion, (char *, unsigned))                                        \
    X(SystemGetNVMLVersion, (char *, unsigned))                                          \
    X(DeviceGetCount_v2, (unsigned *))                                                   \
    X(DeviceGetHandleByIndex_v2, (unsigned, struct nvml_handle **))                      \
    X(DeviceGetHandleByUUID, (const char *, struct nvml_handle **))                      \
    NVML_TEXT_OF(DeviceGetUUID)                                                          \
    NVML_TEXT_OF(DeviceGetSerial)                                                        \
    NVML_TEXT_OF(DeviceGetName)                                                          \
    NVML_TEXT_OF(DeviceGetVbiosVersion)                                                  \
    X(DeviceGetPciInfo_v3, (struct nvml_handle *, struct nvml_pci *))                    \
    NVML_NUMBER_OF(DeviceGetPersistenceMode)                                             \
    X(DeviceGetEccMode, (struct nvml_handle *, unsigned *, unsigned *))                  \
    X(DeviceGetTotalEccErrors, (struct nvml_handle *, int, int, unsigned long long *))   \
    X(DeviceGetRemappedRows,                                                             \
      (struct nvml_handle *, unsigned *, unsigned *, unsigned *, unsigned *))            \
    X(DeviceGetMigMode, (struct nvml_handle *, unsigned *, unsigned *))                  \
    NVML_NUMBER_OF(DeviceGetMaxMigDeviceCount)                                           \
    X(DeviceGetMigDeviceHandleByIndex,                                                   \
      (struct nvml_handle *, unsigned, struct nvml_handle **))                           \
    X(DeviceGetDeviceHandleFromMigDeviceHandle,                                          \
      (struct nvml_handle *, struct nvml_handle **))                                     \
    NVML_NUMBER_OF(DeviceGetGpuInstanceId)                                               \
    NVML_NUMBER_OF(DeviceGetComputeInstanceId)                                           \
    X(DeviceGetClockInfo, (struct nvml_handle *, int, unsigned *))                       \
    X(DeviceGetTemperature, (struct nvml_handle *, int, unsigned *))                     \
    NVML_NUMBER_OF(DeviceGetPowerUsage)                                                  \
    NVML_LIST_OF(DeviceGetComputeRunningProcesses)                                       \
    NVML_LIST_OF(DeviceGetGraphicsRunningProcesses)                                      \
    X(DeviceGetCurrentClocksEventReasons, (struct nvml_handle *, unsigned long long *))  \
    X(DeviceGetCurrentClocksThrottleReasons, (struct nvml_handle *, unsigned long long *))

/* A member is NULL where the library lacks the function. */
struct nvml_api {
#define X(function, parameters) int(*function) parameters;
    NVML_FUNCTIONS
#undef X
};

/* What FUNCTION returns, or NVML_FUNCTION_NOT_FOUND. */
#define NVML_CALL(api, function, ...)                                                    \
    ((api)->function ? (api)->function(__VA_ARGS__) : (int)NVML_FUNCTION_NOT_FOUND)

enum { NVML_CAUSE_SIZE = 256 };

/* Loads libnvidia-ml.so.1, for the life of the process.  False, with one line in
 * ret_cause, where there is none or it is not NVML. */
bool nvml_api_load(struct nvml_api *ret_api, char ret_cause[NVML_CAUSE_SIZE]);

/* "the GPU is lost (15)". */
void nvml_describe(int code, char ret_text[NVML_CAUSE_SIZE]);

#endif
