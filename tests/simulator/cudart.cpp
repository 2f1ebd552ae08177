#include "tests/simulator/cudart.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <sys/file.h>
#include <unistd.h>
#include <vector>

struct CUstream_st {
    int device;
};

struct cudasim_event {
    struct timespec time;
    bool blocks;
};

enum { ALIGNMENT = 256, FRESH = 0xCD };

/* Small, so that a test can exhaust it. */
static size_t device_bytes()
{
    const char *number = getenv("REPROD_CUDASIM_GIB");
    return (size_t)(number ? atoi(number) : 1) << 30;
}

static size_t allocated;

namespace
{
struct allocation {
    size_t bytes;
    int device;
};
} // namespace

/* For cudasim_memory_at and cudasim_stream_device: by address. */
static std::map<const char *, allocation> &allocations =
    *new std::map<const char *, allocation>();
static std::set<const CUstream_st *> &streams = *new std::set<const CUstream_st *>();

/* Threads may outlive static destructors. */
std::mutex &cudasim::turn = *new std::mutex();

static cudaError_t failure = cudaSuccess;

static const struct {
    cudaError_t error;
    const char *name, *text;
} errors[] = {
    { cudaSuccess, "cudaSuccess", "no error" },
    { cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument" },
    { cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory" },
    { cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable",
      "CUDA-capable device(s) is/are busy or unavailable" },
    { cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal" },
    { cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable",
      "uncorrectable ECC error encountered" },
    { cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
      "an illegal memory access was encountered" },
};

static const size_t error_count = sizeof errors / sizeof *errors;

const char *cudaGetErrorName(cudaError_t error)
{
    for (size_t i = 0; i < error_count; i++) {
        if (errors[i].error == error) {
            return errors[i].name;
        }
    }
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    for (size_t i = 0; i < error_count; i++) {
        if (errors[i].error == error) {
            return errors[i].text;
        }
    }
    return "unrecognized error code";
}

bool cudasim::device_takes_kernel(const char *kernel)
{
    enum { TENTH = 10 };
    static int launches; /* of the kernel that is named */
    const char *number = getenv("REPROD_CUDASIM_ERROR");
    const char *named = number ? strchr(number, '@') : nullptr;
    launches += named && strcmp(named + 1, kernel) == 0;
    if (number && (!named || launches == TENTH)) {
        failure = (cudaError_t)atoi(number);
    }
    return failure == cudaSuccess;
}

cudaError_t cudaGetLastError()
{
    return failure;
}

/* No driver: it is what tells a simulation from a device. */
cudaError_t cudaDriverGetVersion(int *ret_version)
{
    *ret_version = 0;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *ret_version)
{
    *ret_version = CUDART_VERSION;
    return cudaSuccess;
}

namespace
{
/* A GPU without MIG, or a slice. */
struct unit {
    int number;
    std::string profile; /* of a slice; "": a GPU */
    std::string id() const
    {
        return (profile.empty() ? "" : "MIG-") + ("sim:" + std::to_string(number));
    }
};
} // namespace

static int first_number()
{
    const char *number = getenv("REPROD_CUDASIM_FIRST");
    return number ? atoi(number) : 0;
}

/* The parts of TEXT between commas, or other separators. */
static std::vector<std::string> split(const std::string &text, char separator)
{
    std::vector<std::string> parts;
    std::istringstream rest(text);
    for (std::string part; std::getline(rest, part, separator);) {
        parts.push_back(part);
    }
    return parts;
}

/* REPROD_CUDASIM_MIG=1g.1gb+3g.4gb,-,none: a GPU with two slices, one without MIG, and
 * one in MIG mode without a slice.  Numbers go through all of them. */
static std::vector<unit> all_units()
{
    const char *mig = getenv("REPROD_CUDASIM_MIG"),
               *count = getenv("REPROD_CUDASIM_DEVICES");
    std::vector<unit> units;
    int number = first_number();
    for (int i = 0; !mig && i < (count ? atoi(count) : 1); i++) {
        units.push_back({ number++, "" });
    }
    for (const std::string &gpu : split(mig ? mig : "", ',')) {
        for (const std::string &slice : split(gpu, '+')) {
            if (slice != "none") {
                units.push_back({ number++, slice == "-" ? "" : slice });
            }
        }
    }
    return units;
}

/* Those that a process is shown by itself: one slice, and then no GPU. */
static std::vector<unit> default_units(const std::vector<unit> &all)
{
    for (const unit &each : all) {
        if (!each.profile.empty()) {
            return { each };
        }
    }
    return all;
}

/* CUDA_VISIBLE_DEVICES names them by id or by number, up to the first that is none. */
static std::vector<unit> named_units(const std::string &names,
                                     const std::vector<unit> &all)
{
    std::vector<unit> shown = default_units(all), named;
    for (const std::string &name : split(names, ',')) {
        bool numbered =
            !name.empty() && name.find_first_not_of("0123456789") == name.npos;
        const unit *found = nullptr;
        for (const unit &each : all) {
            found = each.id() == name ? &each : found;
        }
        if (numbered && (size_t)atoi(name.c_str()) < shown.size()) {
            found = &shown[(size_t)atoi(name.c_str())];
        }
        if (!found) {
            break;
        }
        named.push_back(*found);
    }
    return default_units(named);
}

/* Read once, as the driver does. */
static const std::vector<unit> &units()
{
    static const std::vector<unit> &shown = *new std::vector<unit>([] {
        const char *names = getenv("CUDA_VISIBLE_DEVICES");
        return names ? named_units(names, all_units()) : default_units(all_units());
    }());
    return shown;
}

static int device_count()
{
    return (int)units().size();
}

static thread_local int current_device;

int cudasim::device_number()
{
    return device_count() ? units()[(size_t)current_device].number : first_number();
}

cudaError_t cudaGetDeviceCount(int *ret_count)
{
    const char *error = getenv("REPROD_CUDASIM_COUNT_ERROR");
    *ret_count = error ? 0 : device_count();
    return error ? (cudaError_t)atoi(error) : cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= device_count()) {
        return cudaErrorInvalidDevice;
    }
    current_device = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *ret_device)
{
    *ret_device = current_device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *ret_properties, int device)
{
    *ret_properties = cudaDeviceProp();
    if (device < 0 || device >= device_count()) {
        return cudaErrorInvalidDevice;
    }
    const char *name = getenv("REPROD_CUDASIM_NAME");
    const unit &shown = units()[(size_t)device];
    ret_properties->pciDeviceID = shown.number;
    snprintf(ret_properties->name, sizeof ret_properties->name, "%s%s%s",
             name ? name : "simulator, no GPU", shown.profile.empty() ? "" : " MIG ",
             shown.profile.c_str());
    ret_properties->totalGlobalMem = device_bytes();
    ret_properties->multiProcessorCount = shown.profile.empty() ? 2 : 1;
    ret_properties->maxThreadsPerMultiProcessor = 64;
    if (getenv("REPROD_CUDASIM_MAJOR")) {
        ret_properties->major = atoi(getenv("REPROD_CUDASIM_MAJOR"));
    }
    return cudaSuccess;
}

static int compute_mode()
{
    const char *number = getenv("REPROD_CUDASIM_COMPUTE_MODE");
    return number ? atoi(number) : cudaComputeModeDefault;
}

cudaError_t cudaDeviceGetAttribute(int *ret_value, cudaDeviceAttr, int device)
{
    *ret_value = compute_mode();
    return device < 0 || device >= device_count() ? cudaErrorInvalidDevice : cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *ret_least, int *ret_greatest)
{
    *ret_least = 0;
    *ret_greatest = -5;
    return cudaSuccess;
}

/* False where the compute mode lets this process have none. */
static bool has_context()
{
    static int lock = -1;
    const char *path = getenv("REPROD_CUDASIM_CONTEXTS");
    if (compute_mode() == cudaComputeModeProhibited) {
        return false;
    }
    if (compute_mode() != cudaComputeModeExclusiveProcess || !path || lock >= 0) {
        return true;
    }
    lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0) {
        close(lock);
        lock = -1;
    }
    return lock >= 0;
}

cudaError_t cudaDeviceSynchronize()
{
    return failure;
}

cudaError_t cudaMalloc(void **ret_memory, size_t bytes)
{
    std::lock_guard<std::mutex> lock(cudasim::turn);
    *ret_memory = nullptr;
    if (!failure && !has_context()) {
        return cudaErrorDevicesUnavailable;
    }
    if (failure) {
        return failure;
    }
    if (bytes > device_bytes() - allocated) {
        return cudaErrorMemoryAllocation;
    }
    if (posix_memalign(ret_memory, ALIGNMENT, bytes) != 0) {
        return cudaErrorMemoryAllocation;
    }
    allocated += bytes;
    allocations[(const char *)*ret_memory] = { bytes, current_device };
    memset(*ret_memory, FRESH, bytes);
    return cudaSuccess;
}

/* What was freed stays counted: nothing here frees much. */
cudaError_t cudaFree(void *memory)
{
    std::lock_guard<std::mutex> lock(cudasim::turn);
    if (!failure && !has_context()) {
        return cudaErrorDevicesUnavailable;
    }
    allocations.erase((const char *)memory);
    free(memory);
    return failure;
}

cudaError_t cudaMallocHost(void **ret_memory, size_t bytes)
{
    *ret_memory = failure ? nullptr : malloc(bytes);
    if (!*ret_memory) {
        return failure ? failure : cudaErrorMemoryAllocation;
    }
    memset(*ret_memory, FRESH, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
    if (!failure && bytes) {
        memcpy(to, from, bytes);
    }
    return failure;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t)
{
    return cudaMemcpy(to, from, bytes, kind);
}

cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
    if (!failure && bytes) {
        memset(memory, value, bytes);
    }
    return failure;
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t)
{
    return cudaMemset(memory, value, bytes);
}

cudaError_t cudaStreamCreate(cudaStream_t *ret_stream)
{
    *ret_stream = new CUstream_st{ current_device };
    streams.insert(*ret_stream);
    return failure;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *ret_stream, unsigned, int)
{
    return cudaStreamCreate(ret_stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return failure;
}

cudaError_t cudaEventCreate(cudaEvent_t *ret_event)
{
    *ret_event = new cudasim_event();
    return failure;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret_event, unsigned flags)
{
    *ret_event = new cudasim_event();
    (*ret_event)->blocks = flags & cudaEventBlockingSync;
    return failure;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    struct timespec millisecond = { 0, 1000000 };
    if (event->blocks) {
        nanosleep(&millisecond, nullptr);
    }
    return failure;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t)
{
    clock_gettime(CLOCK_MONOTONIC, &event->time);
    return failure;
}

cudaError_t cudaEventElapsedTime(float *ret_milliseconds, cudaEvent_t start,
                                 cudaEvent_t stop)
{
    const char *rate = getenv("REPROD_CUDASIM_NS_PER_KIB");
    if (rate) {
        std::lock_guard<std::mutex> lock(cudasim::turn);
        *ret_milliseconds = (float)(allocated / 1024) * (float)atoi(rate) * 1e-6f;
        return failure;
    }
    *ret_milliseconds = (float)(stop->time.tv_sec - start->time.tv_sec) * 1e3f +
                        (float)(stop->time.tv_nsec - start->time.tv_nsec) * 1e-6f;
    return failure;
}

void cudasim::each_allocation(
    const std::function<void(unsigned char *memory, size_t bytes)> &visit)
{
    for (const auto &[memory, allocation] : allocations) {
        if (allocation.device == current_device) {
            visit((unsigned char *)memory, allocation.bytes);
        }
    }
}

size_t cudasim_memory_at(const void *memory, int *ret_device)
{
    auto after = allocations.upper_bound((const char *)memory);
    *ret_device = -1;
    if (after == allocations.begin()) {
        return 0;
    }
    const auto &[begin, allocation] = *std::prev(after);
    size_t offset = (size_t)((const char *)memory - begin);
    if (offset >= allocation.bytes) {
        return 0;
    }
    *ret_device = allocation.device;
    return allocation.bytes - offset;
}

int cudasim_stream_device(cudaStream_t stream)
{
    return !stream ? current_device : streams.count(stream) ? stream->device : -1;
}
