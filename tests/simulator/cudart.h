/* The part of the CUDA runtime API that reprod uses, for simulated devices, one or, with
 * REPROD_CUDASIM_DEVICES=N, several, which do not check whose memory they read: device
 * memory is host memory, filled with 0xCD when it is allocated, and everything has
 * happened when a call returns.  Semantics: the CUDA Runtime API reference.  Their
 * compute capability is 0.0, or REPROD_CUDASIM_MAJOR=N.0.  REPROD_CUDASIM_FIRST=N numbers
 * them from N instead of 0, and REPROD_CUDASIM_NAME=TEXT is what they are called.
 * REPROD_CUDASIM_MIG=1g.1gb+3g.4gb,-,none is a host instead with a GPU that has two MIG
 * slices ("MIG-sim:0", "MIG-sim:1"), one without MIG ("sim:2") and one in MIG mode
 * without a slice.  CUDA_VISIBLE_DEVICES, ids or numbers, is read at the first call; a
 * process that is shown a slice is shown that one alone. REPROD_CUDASIM_COMPUTE_MODE=N is
 * their compute mode: 2 lets no process make a context, 3 (EXCLUSIVE_PROCESS) one at a
 * time, which holds the lock of the file REPROD_CUDASIM_CONTEXTS.  Several threads can
 * use a device, one after the other.
 *
 * REPROD_CUDASIM_GIB=N is the memory of a device, 1 unless it is set.  Between two events
 * passes what passes, or, with REPROD_CUDASIM_NS_PER_KIB=N, N ns for each KiB that was
 * allocated: no clock is read.
 *
 * REPROD_CUDASIM_COUNT_ERROR=N is the error with which devices cannot be counted.
 * REPROD_CUDASIM_ERROR=N makes the device fail with error N at its first kernel, for
 * good, as a GPU does after an illegal address or an uncorrectable memory error.
 * N@KERNEL: at the tenth launch of KERNEL. */
#ifndef TESTS_SIMULATOR_CUDART_H
#define TESTS_SIMULATOR_CUDART_H

#include <cstddef>
#include <functional>
#include <mutex>

/* The version whose semantics are simulated. */
#define CUDART_VERSION 13000

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorStubLibrary = 34,
    cudaErrorInsufficientDriver = 35,
    cudaErrorDevicesUnavailable = 46,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorECCUncorrectable = 214,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchFailure = 719,
    cudaErrorUnknown = 999
};

enum cudaDeviceAttr { cudaDevAttrComputeMode = 20 };

enum cudaComputeMode {
    cudaComputeModeDefault = 0,
    cudaComputeModeExclusive = 1,
    cudaComputeModeProhibited = 2,
    cudaComputeModeExclusiveProcess = 3
};

enum { cudaStreamNonBlocking = 1, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2 };

enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};

typedef struct CUstream_st *cudaStream_t;
typedef struct cudasim_event *cudaEvent_t;

struct cudaUUID_t {
    char bytes[16];
};

struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    size_t totalGlobalMem;
    int major, minor;
    int multiProcessorCount;
    int maxThreadsPerMultiProcessor;
    int pciDeviceID;
};

struct int2 {
    int x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) double2 {
    double x, y;
};
struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};

const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaDriverGetVersion(int *ret_version);
cudaError_t cudaRuntimeGetVersion(int *ret_version);

cudaError_t cudaGetDeviceCount(int *ret_count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *ret_device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *ret_properties, int device);
cudaError_t cudaDeviceGetAttribute(int *ret_value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetStreamPriorityRange(int *ret_least, int *ret_greatest);
cudaError_t cudaDeviceSynchronize();

cudaError_t cudaMalloc(void **ret_memory, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaMallocHost(void **ret_memory, size_t bytes);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void *memory, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes,
                            cudaStream_t stream = nullptr);

cudaError_t cudaStreamCreate(cudaStream_t *ret_stream);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *ret_stream, unsigned flags,
                                         int priority);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);

cudaError_t cudaEventCreate(cudaEvent_t *ret_event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret_event, unsigned flags);
/* Of an event that blocks: a millisecond, in which other threads have the device. */
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventElapsedTime(float *ret_milliseconds, cudaEvent_t start,
                                 cudaEvent_t stop);

/* For imitations of libraries (tests/fixtures), which are loaded at run time.
 * cudasim_memory_at: bytes of device memory from MEMORY to the end of its allocation, and
 * the device it is of; 0 where MEMORY is of none.  cudasim_stream_device: the device of a
 * stream, of the default stream the current one; -1: no stream. */
extern "C" __attribute__((visibility("default"))) size_t
cudasim_memory_at(const void *memory, int *ret_device);
extern "C" __attribute__((visibility("default"))) int
cudasim_stream_device(cudaStream_t stream);

namespace cudasim
{
/* Whose turn it is: held by a launch, and while memory is allocated or freed. */
extern std::mutex &turn;

/* Called by every launch: false where the device has failed. */
bool device_takes_kernel(const char *kernel);

/* Of the current device, as it stands in its id. */
int device_number();

/* What is allocated on the current device, in the order of addresses. */
void each_allocation(
    const std::function<void(unsigned char *memory, size_t bytes)> &visit);
} // namespace cudasim

#endif
