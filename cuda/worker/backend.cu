/* The backend of CUDA: tensors lie in the memory of one GPU. */
#include "workloads/worker/backend.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cuda/kernels/kernel.h"
#include "cuda/nvml/device_facts.h"
#include "cuda/nvml/processes.h"
#include "cuda/worker/device.h"
#include "cuda/worker/digest.h"
#include "cuda/worker/exact_sum.h"
#include "cuda/worker/fill.h"
#include "cuda/worker/load.h"
#include "cuda/worker/slices.h"
#include "workloads/worker/environment.h"

#ifdef REPROD_CUDASIM
static const char driver_file[] = "";
#else
static const char driver_file[] = "/proc/driver/nvidia/version";
#endif

/* The kernel module's version: the first word of the file that is digits and dots,
 * "580.65.06". */
static bool read_driver_version(char ret_version[VERSION_SIZE])
{
    char line[256] = "";
    char *rest = line;
    FILE *file = fopen(driver_file, "re");

    if (!file) {
        return false;
    }
    bool read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    for (char *word; read && (word = strtok_r(rest, " \n", &rest));) {
        size_t digits = strspn(word, "0123456789.");

        if (isdigit((unsigned char)word[0]) && strchr(word, '.') &&
            word[digits] == '\0' && digits < VERSION_SIZE) {
            memcpy(ret_version, word, digits + 1);
            return true;
        }
    }
    return false;
}

/* Under WSL and in some sandboxes there is a driver, and not its file. */
static void emit_driver(struct emit *emit)
{
    char version[VERSION_SIZE];

    if (read_driver_version(version)) {
        emit_string(emit, "driver", version);
    } else if (device_driver_api_version(version)) {
        nvml_emit_driver(emit);
    }
}

static void emit_versions(struct emit *emit)
{
    char version[VERSION_SIZE];

    emit_driver(emit);
    if (device_driver_api_version(version)) {
        emit_string(emit, "cuda_driver", version);
    }
    device_runtime_version(version);
    emit_string(emit, "cuda_runtime", version);
}

static void emit_hardware(struct emit *emit, const cudaDeviceProp *properties)
{
    char capability[VERSION_SIZE];
    const char *profile = device_mig_profile(properties);

    snprintf(capability, sizeof capability, "%d.%d", properties->major,
             properties->minor);
    emit_string(emit, "compute_capability", capability);
    emit_int(emit, "sm_count", properties->multiProcessorCount);
    if (profile) {
        emit_string(emit, "mig_profile", profile);
    }
}

static void cuda_emit_environment(struct emit *emit, const struct run *run)
{
    const cudaDeviceProp *properties = device_opened();

    (void)run;
    if (properties) {
        emit_string(emit, "model", properties->name);
        emit_hardware(emit, properties);
    }
    emit_versions(emit);
}

/* CUDA shows a process one slice; whoever reads this may think that there are no more. */
static void emit_slices(struct emit *emit, const cudaDeviceProp *properties)
{
    if (device_mig_profile(properties) && slices_are_unknown()) {
        emit_string(emit, "mig_others",
                    "unknown: CUDA shows a process one slice, and NVML, which lists all, "
                    "cannot be asked");
    }
}

/* Whether it can be used; if not, ret_cause says why. */
static bool emit_device(struct emit *emit, const cudaDeviceProp *properties,
                        enum compute_mode mode, char ret_cause[DEVICE_CAUSE_SIZE])
{
    char id[DEVICE_ID_SIZE];

    device_id(properties, id);
    if (mode == MODE_PROHIBITED) {
        device_describe_prohibited(id, ret_cause);
        return false;
    }
    emit_object(emit, NULL);
    emit_string(emit, "id", id);
    emit_string(emit, "model", properties->name);
    emit_object(emit, "attributes");
    emit_hardware(emit, properties);
    emit_int(emit, "memory_bytes", (int64_t)properties->totalGlobalMem);
    if (mode != MODE_UNKNOWN) {
        emit_string(emit, "compute_mode", device_compute_mode_name(mode));
    }
    emit_slices(emit, properties);
    nvml_emit_device_attributes(emit, id);
    emit_object_end(emit);
    emit_object_end(emit);
    return true;
}

/* Whether CUDA lists PROPERTIES to this process among its COUNT devices. */
static bool is_listed(const cudaDeviceProp *properties, int count)
{
    char id[DEVICE_ID_SIZE], other[DEVICE_ID_SIZE];
    cudaDeviceProp listed;

    device_id(properties, id);
    for (int i = 0; i < count; i++) {
        if (device_read(i, &listed)) {
            device_id(&listed, other);
            if (strcmp(id, other) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Those that CUDA lists come first: the first of them is what a run without --device
 * uses. Returns how many can be used. */
static int emit_devices(struct emit *emit, int count, const struct slice *slices,
                        int slice_count, char ret_cause[DEVICE_CAUSE_SIZE])
{
    cudaDeviceProp properties;
    int usable = 0;

    for (int i = 0; i < count; i++) {
        if (device_read(i, &properties)) {
            usable += emit_device(emit, &properties, device_compute_mode(i), ret_cause);
        }
    }
    for (int i = 0; i < slice_count; i++) {
        if (!is_listed(&slices[i].properties, count)) {
            usable += emit_device(emit, &slices[i].properties, slices[i].mode, ret_cause);
        }
    }
    return usable;
}

static void cuda_emit_probe(struct emit *emit)
{
    char cause[DEVICE_CAUSE_SIZE];
    const struct slice *slices;
    int slice_count = slices_read(&slices); /* first: CUDA is not in use yet */
    int count = device_count(cause), usable;

    emit_object(emit, "versions");
    emit_versions(emit);
    nvml_emit_versions(emit);
    facts_emit(emit, "cuda");
    emit_object_end(emit);
    emit_array(emit, "devices");
    usable = emit_devices(emit, count, slices, slice_count, cause);
    emit_array_end(emit);
    emit_string(emit, "cause",
                usable           ? NULL
                : slices_cause() ? slices_cause()
                : cause[0]       ? cause
                                 : "no GPU says what it is");
}

enum { PROCESSES_DEADLINE_MS = 4000 };

static void cuda_emit_telemetry(struct emit *emit, const struct run *)
{
    struct nvml_processes processes;

    nvml_emit_telemetry(emit, device_opened_id());
    nvml_processes_read(device_opened_id(), PROCESSES_DEADLINE_MS, &processes);
    if (nvml_processes_have_self(&processes)) {
        nvml_emit_foreign(emit, "foreign_processes", &processes, NULL);
    }
}

/* A run on a GPU has one host thread, whatever --threads says. */
enum { THREADS_DEFAULT = 1, THREADS_MAX = 256 };

static cudaEvent_t timer_begin, timer_end;

static void cuda_open(struct run *run)
{
    device_open(run);
    digest_device_prepare();
    exact_sum_device_prepare();
    CUDA_TRY(cudaEventCreate(&timer_begin));
    CUDA_TRY(cudaEventCreate(&timer_end));
}

static void *cuda_allocate(struct run *run, size_t bytes)
{
    void *memory = NULL;
    cudaError_t error = cudaMalloc(&memory, bytes);

    (void)run;
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError(); /* forgets it: the device is as it was */
        return NULL;
    }
    CUDA_TRY(error);
    return memory;
}

static void cuda_upload(struct run *run, void *device, const void *host, size_t bytes)
{
    (void)run;
    CUDA_TRY(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
}

static void cuda_download(struct run *run, void *host, const void *device, size_t bytes)
{
    (void)run;
    CUDA_TRY(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
}

/* What was asked for before, the poisoning of outputs, is done before the clock starts.
 */
static void cuda_warm(struct run *run)
{
    (void)run;
    CUDA_TRY(cudaDeviceSynchronize());
}

static void cuda_timer_start(struct run *run)
{
    (void)run;
    CUDA_TRY(cudaEventRecord(timer_begin));
}

/* The event waits for the default stream, and that for streams that do not opt out. */
static double cuda_timer_stop(struct run *run)
{
    float milliseconds;

    (void)run;
    CUDA_TRY(cudaEventRecord(timer_end));
    CUDA_TRY(cudaDeviceSynchronize());
    CUDA_TRY(cudaEventElapsedTime(&milliseconds, timer_begin, timer_end));
    return milliseconds;
}

static const struct backend cuda_backend = {
    .name = "cuda",
    .alignment = 256, /* cudaMalloc's, which libraries document that they rely on */
    .threads_default = THREADS_DEFAULT,
    .threads_max = THREADS_MAX,
    .select = device_select,
    .open = cuda_open,
    .device_id = device_opened_id,
    .allocate = cuda_allocate,
    .fill = fill_tensor,
    .upload = cuda_upload,
    .download = cuda_download,
    .poison = fill_poison,
    .digest = digest_device,
    .exact_sum = exact_sum_device,
    .warm = cuda_warm,
    .timer_start = cuda_timer_start,
    .timer_stop = cuda_timer_stop,
    .load_within = &device_load,
    .emit_environment = cuda_emit_environment,
    .emit_probe = cuda_emit_probe,
    .emit_telemetry = cuda_emit_telemetry,
    .emit_processes = nvml_emit_processes,
};
BACKEND_REGISTER(cuda_backend);
