/* Whether a device can compute with TF32 (workloads/shared/tf32.h). */
#ifndef CUDA_KERNELS_TF32_H
#define CUDA_KERNELS_TF32_H

#include "cuda/kernels/kernel.h"

enum { TF32_MAJOR = 8 };

/* Ends RUN as `unsupported` where the device has no Tensor Cores for TF32: a library
 * would compute as if it were not permitted. */
static inline void tf32_need_device(struct run *run)
{
    int device;
    cudaDeviceProp properties;

    CUDA_TRY(cudaGetDevice(&device));
    CUDA_TRY(cudaGetDeviceProperties(&properties, device));
    if (properties.major < TF32_MAJOR) {
        run_unsupported(run,
                        "TF32 needs compute capability 8.0, and this device has %d.%d",
                        properties.major, properties.minor);
    }
}

#endif
