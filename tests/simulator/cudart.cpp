#include "tests/simulator/cudart.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <set>

struct CUstream_st {
    int device;
};

struct cudasim_event {
    struct timespec time;
};

enum { ALIGNMENT = 256, FRESH = 0xCD };

/* Small, so that a test can exhaust it. */
static const size_t DEVICE_BYTES = (size_t)1 << 30;
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

static cudaError_t failure = cudaSuccess;

static const struct {
    cudaError_t error;
    const char *name, *text;
} errors[] = {
    { cudaSuccess, "cudaSuccess", "no error" },
    { cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument" },
    { cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory" },
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

bool cudasim::device_takes_kernel()
{
    const char *number = getenv("REPROD_CUDASIM_ERROR");
    if (number) {
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

static int device_count()
{
    const char *number = getenv("REPROD_CUDASIM_DEVICES");
    return number ? atoi(number) : 1;
}

static int current_device;

static int first_number()
{
    const char *number = getenv("REPROD_CUDASIM_FIRST");
    return number ? atoi(number) : 0;
}

int cudasim::device_number()
{
    return first_number() + current_device;
}

cudaError_t cudaGetDeviceCount(int *ret_count)
{
    *ret_count = device_count();
    return cudaSuccess;
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
    ret_properties->pciDeviceID = first_number() + device;
    snprintf(ret_properties->name, sizeof ret_properties->name, "%s",
             name ? name : "simulator, no GPU");
    ret_properties->totalGlobalMem = DEVICE_BYTES;
    ret_properties->multiProcessorCount = 2;
    if (getenv("REPROD_CUDASIM_MAJOR")) {
        ret_properties->major = atoi(getenv("REPROD_CUDASIM_MAJOR"));
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize()
{
    return failure;
}

cudaError_t cudaMalloc(void **ret_memory, size_t bytes)
{
    *ret_memory = nullptr;
    if (failure) {
        return failure;
    }
    if (bytes > DEVICE_BYTES - allocated) {
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

cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return failure;
}

cudaError_t cudaEventCreate(cudaEvent_t *ret_event)
{
    *ret_event = new cudasim_event();
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
