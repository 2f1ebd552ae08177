/* How fast the worker's digest and exact sum read, compared with a copy on the device.
 * Prints one JSON object.  Usage: gpu-bandwidth [MIB], 4096 by default or a quarter of
 * the memory. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "cuda/kernels/kernel.h"
#include "cuda/worker/device.h"
#include "cuda/worker/digest.h"
#include "cuda/worker/exact_sum.h"
#include "cuda/worker/fill.h"
#include "workloads/worker/run.h"

enum { REPEATS = 15, WARM_UP = 2, MIB_DEFAULT = 4096 };

/* A run is what the worker's functions ask for. */
static struct run run;
static struct tensor tensor;
static void *copy;

static int end_early_cb(struct run *, const char *outcome, const char *cause)
{
    fprintf(stderr, "gpu-bandwidth: %s: %s\n", outcome, cause);
    return 1;
}

static void take_digest(void)
{
    digest_device(&run, &tensor);
}

static void take_sum(void)
{
    exact_sum_device(&run, &tensor);
}

static void take_copy(void)
{
    CUDA_TRY(cudaMemcpyAsync(copy, tensor.data, (size_t)tensor.shape[0] * sizeof(float),
                             cudaMemcpyDeviceToDevice));
}

/* Bytes a second, in units of 10^9: median, least and most of REPEATS. */
static void print_rate(const char *name, void (*work)(void), double bytes)
{
    cudaEvent_t begin, end;
    double rates[REPEATS];
    CUDA_TRY(cudaEventCreate(&begin));
    CUDA_TRY(cudaEventCreate(&end));
    for (int i = -WARM_UP; i < REPEATS; i++) {
        float milliseconds;
        CUDA_TRY(cudaDeviceSynchronize());
        CUDA_TRY(cudaEventRecord(begin));
        work();
        CUDA_TRY(cudaEventRecord(end));
        CUDA_TRY(cudaDeviceSynchronize());
        CUDA_TRY(cudaEventElapsedTime(&milliseconds, begin, end));
        if (i >= 0) {
            rates[i] = bytes / milliseconds * 1e-6;
        }
    }
    std::sort(rates, rates + REPEATS);
    printf(",\"%s\":{\"median\":%.3f,\"least\":%.3f,\"most\":%.3f,\"repeats\":%d}", name,
           rates[REPEATS / 2], rates[0], rates[REPEATS - 1], (int)REPEATS);
}

static void make_tensor(int64_t mib)
{
    struct filling filling = {};
    size_t bytes = (size_t)mib << 20;
    filling.fill = FILL_UNIFORM;
    filling.seed = 1;
    tensor.name = "x";
    tensor.dtype = DTYPE_FLOAT32;
    tensor.rank = 1;
    tensor.shape[0] = (int64_t)(bytes / sizeof(float));
    CUDA_TRY(cudaMalloc(&tensor.data, bytes));
    CUDA_TRY(cudaMalloc(&copy, bytes));
    fill_tensor(&run, &tensor, &filling);
}

int main(int argc, char **argv)
{
    run_on_early_end(end_early_cb);
    device_open(&run);
    digest_device_prepare();
    exact_sum_device_prepare();
    int64_t quarter = (int64_t)(device_opened()->totalGlobalMem >> 20) / 4;
    int64_t mib = argc > 1 ? atoll(argv[1]) : std::min<int64_t>(MIB_DEFAULT, quarter);
    make_tensor(mib);
    double bytes = (double)mib * (1 << 20);
    printf("{\"device\":\"%s\",\"bytes\":%.0f", device_opened_id(), bytes);
    print_rate("digest", take_digest, bytes);
    print_rate("exact_sum", take_sum, bytes);
    print_rate("copy", take_copy, 2 * bytes); /* reads them and writes them */
    puts("}");
    return 0;
}
