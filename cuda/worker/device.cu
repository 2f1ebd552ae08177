#include "cuda/worker/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/library/driver.h"
#include "cuda/nvml/visible.h"
#include "daemon/base/nearest.h"
#include "workloads/worker/ending.h"
#include "workloads/worker/self.h"

enum { DEVICES_MAX = 64 };

static struct {
    struct run *run;    /* NULL until opened */
    const char *wanted; /* NULL: whichever CUDA lists first */
    int selected;
    enum compute_mode mode; /* of the one that was opened */
    bool failed;
    cudaDeviceProp properties;
    char id[DEVICE_ID_SIZE];
} device;

/* CUDA writes 13.1 as 13010. */
static void write_version(int version, char ret_version[VERSION_SIZE])
{
    snprintf(ret_version, VERSION_SIZE, "%d.%d", version / 1000, version % 1000 / 10);
}

void device_runtime_version(char ret_version[VERSION_SIZE])
{
    int version = CUDART_VERSION;

    cudaRuntimeGetVersion(&version);
    write_version(version, ret_version);
}

bool device_driver_api_version(char ret_version[VERSION_SIZE])
{
    int version = 0;

    if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0) {
        return false;
    }
    write_version(version, ret_version);
    return true;
}

const char *device_mig_profile(const cudaDeviceProp *properties)
{
    const char *mig = strstr(properties->name, " MIG ");

    return mig ? mig + strlen(" MIG ") : NULL;
}

static void describe_missing_driver(char ret_cause[DEVICE_CAUSE_SIZE])
{
    char runtime[VERSION_SIZE], driver[VERSION_SIZE];

    device_runtime_version(runtime);
    if (!device_driver_api_version(driver)) {
        snprintf(ret_cause, DEVICE_CAUSE_SIZE,
                 "no NVIDIA driver: libcuda.so.1 was not found "
                 "(cudaErrorInsufficientDriver, 35)");
        return;
    }
    snprintf(
        ret_cause, DEVICE_CAUSE_SIZE,
        "the NVIDIA driver is too old: it is for CUDA %s, this worker was built with "
        "CUDA %s (cudaErrorInsufficientDriver, 35)",
        driver, runtime);
}

#ifdef REPROD_CUDASIM
static const char *device_folder(void)
{
    const char *folder = getenv("REPROD_CUDASIM_DEV");

    return folder ? folder : "/dev";
}
#else
static const char *device_folder(void)
{
    return "/dev";
}
#endif

static bool has_device_file(const char *name)
{
    char path[DEVICE_CAUSE_SIZE];

    snprintf(path, sizeof path, "%.200s/%s", device_folder(), name);
    return access(path, F_OK) == 0;
}

/* The driver makes that file when it is first needed, by a program with more privileges,
 * which a process that may gain none cannot start: reprod-launch sees to that. */
static const char *missing_file(void)
{
    return has_device_file("nvidiactl") && !has_device_file("nvidia-uvm")
               ? "; /dev/nvidia-uvm is missing, and a worker may not make it: run "
                 "'nvidia-modprobe -u -c 0' as root after each boot "
                 "(deploy/reprod-nvidia-uvm.service)"
               : "";
}

static void describe_no_device(char ret_cause[DEVICE_CAUSE_SIZE])
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    snprintf(ret_cause, DEVICE_CAUSE_SIZE,
             "the NVIDIA driver shows no GPU%s%.128s (cudaErrorNoDevice, 100)%s",
             visible ? "; CUDA_VISIBLE_DEVICES=" : "", visible ? visible : "",
             missing_file());
}

static void describe(cudaError_t error, char ret_cause[DEVICE_CAUSE_SIZE])
{
    switch ((int)error) {
    case cudaErrorInsufficientDriver:
        describe_missing_driver(ret_cause);
        break;
    case cudaErrorStubLibrary:
        snprintf(ret_cause, DEVICE_CAUSE_SIZE,
                 "no NVIDIA driver: libcuda.so.1 is the toolkit's stub "
                 "(cudaErrorStubLibrary, 34)");
        break;
    case cudaErrorNoDevice:
        describe_no_device(ret_cause);
        break;
    default:
        snprintf(ret_cause, DEVICE_CAUSE_SIZE, "the GPUs cannot be listed: %s (%s, %d)%s",
                 cudaGetErrorString(error), cudaGetErrorName(error), (int)error,
                 missing_file());
        break;
    }
}

/* CUDA's run-time library asks the dynamic linker for the driver's by its name, which
 * finds what is loaded. */
static void find_driver(void)
{
#ifndef REPROD_CUDASIM
    driver_open("libcuda.so.1", driver_folders);
#endif
}

static cudaError_t list_devices(int *ret_count)
{
    cudaError_t error;

    find_driver();
    *ret_count = 0;
    error = cudaGetDeviceCount(ret_count);
    if (error == cudaSuccess && *ret_count < 1) {
        return cudaErrorNoDevice;
    }
    if (error != cudaSuccess) {
        cudaGetLastError(); /* forgets it: nothing is in use yet */
        *ret_count = 0;
    }
    return error;
}

int device_count(char ret_cause[DEVICE_CAUSE_SIZE])
{
    int count;
    cudaError_t error = list_devices(&count);

    ret_cause[0] = '\0';
    if (error != cudaSuccess) {
        describe(error, ret_cause);
    }
    return count;
}

bool device_read(int index, cudaDeviceProp *ret_properties)
{
    if (cudaGetDeviceProperties(ret_properties, index) == cudaSuccess) {
        return true;
    }
    cudaGetLastError();
    return false;
}

#ifdef REPROD_CUDASIM
void device_id(const cudaDeviceProp *properties, char ret_id[DEVICE_ID_SIZE])
{
    snprintf(ret_id, DEVICE_ID_SIZE, "%s" DEVICE_ID_PREFIX "%d",
             device_mig_profile(properties) ? "MIG-" : "", properties->pciDeviceID);
}
#else
/* The runtime gives a MIG slice the UUID of the slice, which nvidia-smi prints with
 * another prefix. */
void device_id(const cudaDeviceProp *properties, char ret_id[DEVICE_ID_SIZE])
{
    bool is_slice = device_mig_profile(properties) != NULL;
    char *end = ret_id + snprintf(ret_id, DEVICE_ID_SIZE, "%s",
                                  is_slice ? "MIG-" : DEVICE_ID_PREFIX);

    for (int i = 0; i < 16; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;

        end += snprintf(end, 4, "%s%02x", dash ? "-" : "",
                        (unsigned char)properties->uuid.bytes[i]);
    }
}
#endif

enum compute_mode device_compute_mode(int index)
{
    int mode = -1;

    if (cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, index) != cudaSuccess) {
        cudaGetLastError();
        return MODE_UNKNOWN;
    }
    return mode == cudaComputeModeDefault            ? MODE_DEFAULT
           : mode == cudaComputeModeExclusiveProcess ? MODE_ONE_PROCESS
           : mode == cudaComputeModeProhibited       ? MODE_PROHIBITED
                                                     : MODE_UNKNOWN;
}

const char *device_compute_mode_name(enum compute_mode mode)
{
    static const char *const names[] = { NULL, "default", "exclusive_process",
                                         "prohibited" };

    return names[mode];
}

bool device_is_of_one_process(void)
{
    return device.mode == MODE_ONE_PROCESS;
}

void device_describe_prohibited(const char *id, char ret_cause[DEVICE_CAUSE_SIZE])
{
    snprintf(ret_cause, DEVICE_CAUSE_SIZE,
             "%s: its compute mode is PROHIBITED, which lets no process use it; "
             "nvidia-smi -i %s -c DEFAULT ends that",
             id, id);
}

/* The first GPU that no process may use; NULL: none. */
static const char *find_prohibited(void)
{
    static char cause[DEVICE_CAUSE_SIZE];
    char id[DEVICE_ID_SIZE];
    cudaDeviceProp properties;
    int count = device_count(cause);

    for (int i = 0; i < count; i++) {
        if (device_compute_mode(i) == MODE_PROHIBITED && device_read(i, &properties)) {
            device_id(&properties, id);
            device_describe_prohibited(id, cause);
            return cause;
        }
    }
    return NULL;
}

static const char *no_value(void)
{
    return NULL;
}

static const struct workload_fact compute_mode_fact = { .backend = "cuda",
                                                        .name = "compute_mode",
                                                        .value = no_value,
                                                        .problem = find_prohibited };
WORKLOAD_FACT_REGISTER(compute_mode_fact);

static const char visible_name[] = "CUDA_VISIBLE_DEVICES";

/* Chooses ID among the COUNT devices that CUDA lists, or one that does not say what it
 * is, as open will tell; else adds them to NAMES. */
static bool select_listed(const char *id, int count, const char **names, int *ret_listed)
{
    static char ids[DEVICES_MAX][DEVICE_ID_SIZE];
    cudaDeviceProp properties;
    int listed = 0;

    for (int i = 0; i < count && listed < DEVICES_MAX; i++) {
        if (!device_read(i, &properties)) {
            return true;
        }
        device_id(&properties, ids[listed]);
        if (strcmp(ids[listed], id) == 0) {
            device.selected = i;
            return true;
        }
        names[listed] = ids[listed];
        listed++;
    }
    *ret_listed = listed;
    return false;
}

/* What the user asked for by CUDA_VISIBLE_DEVICES before it was narrowed. */
static const char *copy_visible(void)
{
    static char copy[4096];
    const char *visible = getenv(visible_name);

    if (!visible || strlen(visible) >= sizeof copy) {
        return visible ? "" : NULL;
    }
    memcpy(copy, visible, strlen(visible) + 1);
    return copy;
}

/* CUDA does not list ID to this process.  Where NVML does, and the process was shown more
 * than ID, the program begins anew and is shown that alone: a whole GPU beside slices is
 * only seen so.  True: NVML lists it, and still CUDA does not.  Else adds to NAMES, after
 * *COUNT, what NVML lists. */
static bool find_hidden(const char *id, const char *visible, const char **names,
                        int *count)
{
    const char *ids[VISIBLE_MAX], *cause;
    const struct nvml_inventory *inventory = nvml_inventory_get(&cause);
    int hidden = inventory ? visible_list(inventory, visible, ids) : 0;
    const char *now = getenv(visible_name);

    for (int i = 0; i < hidden; i++) {
        if (strcmp(ids[i], id) == 0) {
            if (visible_is_partial(inventory) && !(now && strcmp(now, id) == 0)) {
                setenv(visible_name, id, 1);
                self_again();
            }
            return true;
        }
        names[(*count)++] = ids[i];
    }
    return false;
}

bool device_select(const char *id, char ret_message[BACKEND_MESSAGE_SIZE])
{
    static const char *names[(int)DEVICES_MAX + (int)VISIBLE_MAX];
    const char *visible = copy_visible();
    cudaError_t error;
    int count, known = 0;

    if (!id) {
        return true;
    }
    device.wanted = id;
    /* Only a process that sees nothing else can use it; CUDA reads this once. */
    if (visible_is_slice(id) && visible_allows(visible, id)) {
        setenv(visible_name, id, 1);
    }
    error = list_devices(&count);
    if ((error != cudaSuccess && error != cudaErrorNoDevice) ||
        select_listed(id, count, names, &known) ||
        find_hidden(id, visible, names, &known) || known == 0 ||
        (count == 0 && !visible_is_slice(id))) {
        return true;
    }
    snprintf(ret_message, BACKEND_MESSAGE_SIZE, "unknown device '%.128s'; nearest: '%s'",
             id, nearest_of(id, names, known));
    return false;
}

/* It is not part of any timing. */
static void make_context(void)
{
    char cause[DEVICE_CAUSE_SIZE], id[DEVICE_ID_SIZE];
    cudaDeviceProp properties;
    cudaError_t error = cudaFree(NULL);

    if (error == cudaErrorDevicesUnavailable && device.mode == MODE_ONE_PROCESS) {
        device.failed = true;
        run_infra(device.run,
                  "another process uses the GPU, and its compute mode is "
                  "EXCLUSIVE_PROCESS: one at a time (cudaErrorDevicesUnavailable, 46)");
    }
    if (error != cudaSuccess && device.mode == MODE_PROHIBITED &&
        device_read(device.selected, &properties)) {
        device.failed = true;
        device_id(&properties, id);
        device_describe_prohibited(id, cause);
        run_infra(device.run, "%s", cause);
    }
    cuda_check(error, "cudaFree(NULL)");
}

/* What computes elsewhere than it was asked to is no evidence of either device. */
static void refuse_another(struct run *run)
{
    if (device.wanted && strcmp(device.wanted, device.id) != 0) {
        device.failed = true;
        run_infra(run, "CUDA shows %s, and not %s, which was asked for", device.id,
                  device.wanted);
    }
}

void device_open(struct run *run)
{
    char cause[DEVICE_CAUSE_SIZE];
    int index;

    device.run = run;
    run->threads = 1;
    if (device_count(cause) == 0) {
        device.failed = true;
        run_infra(run, "%s", cause);
    }
    device.mode = device_compute_mode(device.selected);
    CUDA_TRY(cudaSetDevice(device.selected));
    make_context();
    CUDA_TRY(cudaGetDevice(&index));
    CUDA_TRY(cudaGetDeviceProperties(&device.properties, index));
    device_id(&device.properties, device.id);
    refuse_another(run);
}

const cudaDeviceProp *device_opened(void)
{
    return device.id[0] ? &device.properties : NULL;
}

const char *device_opened_id(void)
{
    return device.id[0] ? device.id : "unknown";
}

bool device_has_failed(void)
{
    return device.failed;
}

void cuda_check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess) {
        return;
    }
    if (error == cudaErrorMemoryAllocation) {
        run_out_of_memory(device.run, "%s: out of device memory", what);
    }
    device.failed = true;
    run_infra(device.run, "%s: %s (%s, %d)", what, cudaGetErrorString(error),
              cudaGetErrorName(error), (int)error);
}

void kernel_launched(const char *kernel)
{
    cuda_check(cudaGetLastError(), kernel);
}
