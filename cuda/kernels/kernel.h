/* The one header that every kernel file includes: the CUDA language and runtime, or their
 * simulation on the CPU (tests/simulator/cudasim.h) with -DREPROD_CUDASIM, and what all
 * kernels need.
 *
 * Rules for kernels whose order of accumulation is promised: the order depends on shapes
 * alone, never on the size of the grid or the number of multiprocessors; a thread that
 * meets others uses __syncthreads, not time.  Products and sums are not contracted
 * (-fmad=false), and no fast-math flag is set, so a kernel that adds in the order of the
 * CPU's workload has the same bits. */
#ifndef CUDA_KERNELS_KERNEL_H
#define CUDA_KERNELS_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef REPROD_CUDASIM
#include "tests/simulator/cudasim.h"
#else
#include <cuda_runtime.h>
#endif

#include "workloads/workload.h"

/* Threads of a block, where nothing speaks for another number. */
enum { KERNEL_THREADS = 256, WARP_LANES = 32 };
#define ALL_LANES 0xffffffffu

/* LAUNCH(kernel, grid, block, shared_bytes, stream, arguments …): starts KERNEL; a
 * configuration that the device refuses ends the run.  Errors inside the kernel show when
 * the run waits for the device. */
#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                           \
    (LAUNCH_UNCHECKED(kernel, grid, block, shared_bytes, stream, __VA_ARGS__),           \
     kernel_launched(#kernel))
/* Likewise, for a thread that cannot end the run: it asks cudaGetLastError(). */
#ifdef REPROD_CUDASIM
#define LAUNCH_UNCHECKED(kernel, grid, block, shared_bytes, stream, ...)                 \
    ((void)(stream),                                                                     \
     cudasim::launch_kernel(#kernel, grid, block, shared_bytes, kernel, __VA_ARGS__))
#else
#define LAUNCH_UNCHECKED(kernel, grid, block, shared_bytes, stream, ...)                 \
    (kernel<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__))
/* The block's shared memory whose size the launch gives, as TYPE *NAME. */
#define DYNAMIC_SHARED(type, name)                                                       \
    extern __shared__ __align__(16) unsigned char name##_bytes[];                        \
    type *name = (type *)name##_bytes
#endif

/* One thread an item: LAUNCH_ITEMS(kernel, count, arguments …) and, in the kernel,
 * KERNEL_FOR(i, count) … */
#define LAUNCH_ITEMS(kernel, count, ...)                                                 \
    LAUNCH(kernel, kernel_blocks(count), KERNEL_THREADS, 0, 0, __VA_ARGS__)
#define KERNEL_FOR(i, count)                                                             \
    for (int64_t i = kernel_thread(); i < (count); i += kernel_threads())

/* This thread's number in a grid of one dimension, and how many there are. */
__device__ static inline int64_t kernel_thread()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ static inline int64_t kernel_threads()
{
    return (int64_t)gridDim.x * blockDim.x;
}

/* The sum over all lanes of the warp, in each of them, by a butterfly: a fixed order. */
template <class T> __device__ static inline T warp_sum(T value)
{
    for (int step = WARP_LANES / 2; step > 0; step /= 2) {
        value += __shfl_xor_sync(ALL_LANES, value, step);
    }
    return value;
}

/* COUNT / SIZE, rounded up. */
__host__ __device__ static inline int64_t ceil_div(int64_t count, int64_t size)
{
    return (count + size - 1) / size;
}

/* The most blocks that kernel_blocks asks for: as many as threads have use for.  Few in
 * the simulator, a number that depends on the seed: nothing may depend on it. */
static inline int64_t kernel_blocks_max()
{
#ifdef REPROD_CUDASIM
    return cudasim::grid_limit();
#else
    return 1 << 20;
#endif
}

/* Blocks of KERNEL_THREADS for COUNT items.  Above the limit a thread takes several. */
static inline unsigned kernel_blocks(int64_t count)
{
    int64_t most = kernel_blocks_max();
    int64_t blocks = ceil_div(count, KERNEL_THREADS);

    return (unsigned)(blocks < 1 ? 1 : blocks > most ? most : blocks);
}

/* After a launch: ends the run if the device refused it. */
void kernel_launched(const char *kernel);

/* CUDA_TRY(call): ends the run when a call of the runtime fails; out of device memory as
 * `out_of_memory`, anything else as `infra` with the error's name. */
#define CUDA_TRY(call) cuda_check((call), #call)
void cuda_check(cudaError_t error, const char *what);

/* Registers the CUDA twin of the CPU's workload NAME, as its version VERSION says: its
 * list of variants, and its setup; NULL where the CPU's serves. */
#define CUDA_TWIN(name_, version_, variants_, setup_)                                    \
    static const struct workload name_##_cuda = { .name = #name_,                        \
                                                  .version = (version_),                 \
                                                  .backend = "cuda",                     \
                                                  WORKLOAD_VARIANTS(variants_),          \
                                                  .setup = (setup_) };                   \
    WORKLOAD_REGISTER(name_##_cuda)

#endif
