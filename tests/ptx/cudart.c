#include "tests/ptx/cudart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/ptx/shadow.h"

enum { POISON = 0xcd, VERSION = CUDART_VERSION };

static cudaError_t last_error;

cudaError_t cudart_failed(cudaError_t error)
{
    return last_error = error;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;

    last_error = cudaSuccess;
    return error;
}

const char *cudaGetErrorName(cudaError_t error)
{
    switch ((int)error) {
    case cudaSuccess:
        return "cudaSuccess";
    case cudaErrorInvalidValue:
        return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
        return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
        return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDeviceFunction:
        return "cudaErrorInvalidDeviceFunction";
    default:
        return "cudaErrorUnknown";
    }
}

const char *cudaGetErrorString(cudaError_t error)
{
    return cudaGetErrorName(error);
}

cudaError_t cudaDriverGetVersion(int *ret_version)
{
    *ret_version = VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *ret_version)
{
    *ret_version = VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *ret_properties, int device)
{
    (void)device;
    memset(ret_properties, 0, sizeof *ret_properties);
    snprintf(ret_properties->name, sizeof ret_properties->name,
             "nvcc's PTX on a CPU, no GPU");
    ret_properties->totalGlobalMem = (size_t)8 << 30;
    ret_properties->multiProcessorCount = 2;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **ret_memory, size_t bytes)
{
    *ret_memory = shadow_allocate(bytes, cudart_device());
    if (!*ret_memory) {
        return cudart_failed(cudaErrorMemoryAllocation);
    }
    memset(*ret_memory, POISON, bytes);
    return cudaSuccess;
}

/* Page-locked or not is the same here. */
cudaError_t cudaMallocHost(void **ret_memory, size_t bytes)
{
    *ret_memory = malloc(bytes);
    if (!*ret_memory) {
        return cudart_failed(cudaErrorMemoryAllocation);
    }
    memset(*ret_memory, POISON, bytes);
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    shadow_free(memory);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    (void)kind;
    memmove(to, from, bytes);
    shadow_copied(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)stream;
    return cudaMemcpy(to, from, bytes, kind);
}

cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
    memset(memory, value, bytes);
    shadow_written(memory, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    return cudaMemset(memory, value, bytes);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    (void)stream;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *ret_event)
{
    *ret_event = calloc(1, sizeof(struct timespec));
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    (void)stream;
    clock_gettime(CLOCK_MONOTONIC, (struct timespec *)event);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ret_milliseconds, cudaEvent_t start,
                                 cudaEvent_t stop)
{
    const struct timespec *from = (const struct timespec *)start;
    const struct timespec *to = (const struct timespec *)stop;

    *ret_milliseconds = (float)((double)(to->tv_sec - from->tv_sec) * 1e3 +
                                (double)(to->tv_nsec - from->tv_nsec) * 1e-6);
    return cudaSuccess;
}
