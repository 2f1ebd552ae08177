/* The backend of CUDA: tensors lie in the memory of one GPU. */
#include "workloads/worker/backend.h"

#include "cuda/kernels/kernel.h"
#include "cuda/worker/device.h"
#include "cuda/worker/digest.h"
#include "cuda/worker/exact_sum.h"
#include "cuda/worker/facts.h"
#include "cuda/worker/fill.h"

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

/* 256 MiB, more than any cache on the device; every multiprocessor has work, between the
 * memory's two passes in each launch.  The simulator has no time for as much. */
#ifdef REPROD_CUDASIM
enum { LOAD_FLOATS = 1 << 10, LOAD_ROUNDS = 4, LOAD_LAUNCHES = 1 };
#else
enum { LOAD_FLOATS = 64 << 20, LOAD_ROUNDS = 64, LOAD_LAUNCHES = 8 };
#endif

__global__ static void load_kernel(float *values, int64_t count)
{
    KERNEL_FOR(i, count)
    {
        float value = values[i];

        for (int round = 0; round < LOAD_ROUNDS; round++) {
            value = value * 0.999f + 0.001f;
        }
        values[i] = value;
    }
}

static void cuda_load(struct run *)
{
    static float *values;

    if (!values) {
        CUDA_TRY(cudaMalloc((void **)&values, LOAD_FLOATS * sizeof *values));
        CUDA_TRY(cudaMemset(values, 0, LOAD_FLOATS * sizeof *values));
    }
    for (int launch = 0; launch < LOAD_LAUNCHES; launch++) {
        LAUNCH_ITEMS(load_kernel, LOAD_FLOATS, values, LOAD_FLOATS);
    }
    CUDA_TRY(cudaDeviceSynchronize());
}

static const struct backend cuda_backend = {
    .name = "cuda",
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
    .load = cuda_load,
    .emit_environment = facts_emit_environment,
    .emit_probe = facts_emit_probe,
    .emit_telemetry = facts_emit_telemetry,
};
BACKEND_REGISTER(cuda_backend);
