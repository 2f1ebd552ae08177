/* Devices and streams, and what imitations of libraries ask of both and of memory
 * (tests/simulator/cudart.h has the contract).  Several devices, with
 * REPROD_PTX_DEVICES=N, are one that has N numbers: who reads whose memory is not
 * checked. */
#include <stdlib.h>

#include "tests/ptx/cudart.h"
#include "tests/ptx/shadow.h"

struct CUstream_st {
    int device;
    struct CUstream_st *next;
};

static struct CUstream_st *streams;
static int current;

size_t cudasim_memory_at(const void *memory, int *ret_device);
int cudasim_stream_device(struct CUstream_st *stream);

static int device_count(void)
{
    const char *number = getenv("REPROD_PTX_DEVICES");

    return number ? atoi(number) : 1;
}

int cudart_device(void)
{
    return current;
}

cudaError_t cudaGetDeviceCount(int *ret_count)
{
    *ret_count = device_count();
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= device_count()) {
        return cudart_failed(cudaErrorInvalidDevice);
    }
    current = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *ret_device)
{
    *ret_device = current;
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *ret_stream)
{
    struct CUstream_st *stream = malloc(sizeof *stream);

    if (!stream) {
        return cudart_failed(cudaErrorMemoryAllocation);
    }
    *stream = (struct CUstream_st){ current, streams };
    *ret_stream = streams = stream;
    return cudaSuccess;
}

/* A library that is shown memory may write it: nothing tells what it writes. */
size_t cudasim_memory_at(const void *memory, int *ret_device)
{
    size_t room = shadow_room(memory, ret_device);

    shadow_written(memory, room);
    return room;
}

int cudasim_stream_device(struct CUstream_st *stream)
{
    if (!stream) {
        return current;
    }
    for (const struct CUstream_st *at = streams; at; at = at->next) {
        if (at == stream) {
            return at->device;
        }
    }
    return -1;
}
