#include "cuda/worker/load.h"

#include "cuda/kernels/kernel.h"

/* 256 MiB, more than any cache on the device; every multiprocessor has work, between the
 * memory's two passes in each launch.  The simulator has no time for as much. */
#ifdef REPROD_CUDASIM
enum { FLOATS = 1 << 10, ROUNDS = 4, LAUNCHES = 1 };
#else
enum { FLOATS = 64 << 20, ROUNDS = 64, LAUNCHES = 8 };
#endif

__global__ static void load_kernel(float *values, int64_t count)
{
    KERNEL_FOR(i, count)
    {
        float value = values[i];

        for (int round = 0; round < ROUNDS; round++)
            value = value * 0.999f + 0.001f;
        values[i] = value;
    }
}

void load_device(struct run *)
{
    static float *values;

    if (!values) {
        CUDA_TRY(cudaMalloc((void **)&values, FLOATS * sizeof(*values)));
        CUDA_TRY(cudaMemset(values, 0, FLOATS * sizeof(*values)));
    }
    for (int launch = 0; launch < LAUNCHES; launch++)
        LAUNCH_ITEMS(load_kernel, FLOATS, values, FLOATS);
    CUDA_TRY(cudaDeviceSynchronize());
}
