#include "cuda/worker/exact_sum.h"

#include "cuda/kernels/kernel.h"
#include "workloads/instruments/exact_sum_bins.h"

/* Neighbouring lanes use different copies of the bins, so that equal exponents, which are
 * the rule, do not wait for each other.  A chunk's parts of 12 bits fit 32. */
enum { NARROW_BINS = 512, COPIES = 4, CHUNK = 1 << 14 };

struct bins {
    unsigned long long low[EXACT_SUM_BINS_MAX], high[EXACT_SUM_BINS_MAX];
    unsigned int seen;
};

static struct bins *device_bins;
static struct bins host_bins;

/* The bins of a thread block. */
struct chunk_bins {
    unsigned int low[NARROW_BINS][COPIES], high[NARROW_BINS][COPIES];
};

__device__ static void chunk_clear(struct chunk_bins *bins)
{
    __syncthreads();
    for (int i = threadIdx.x; i < NARROW_BINS * COPIES; i += blockDim.x) {
        bins->low[i / COPIES][i % COPIES] = 0;
        bins->high[i / COPIES][i % COPIES] = 0;
    }
    __syncthreads();
}

__device__ static void chunk_flush(const struct chunk_bins *bins, struct bins *total)
{
    __syncthreads();
    for (int bin = threadIdx.x; bin < NARROW_BINS; bin += blockDim.x) {
        unsigned long long low = 0, high = 0;

        for (int copy = 0; copy < COPIES; copy++) {
            low += bins->low[bin][copy];
            high += bins->high[bin][copy];
        }
        if (low | high) {
            atomicAdd(&total->low[bin], low);
            atomicAdd(&total->high[bin], high);
        }
    }
}

/* Most threads find that others have said the same: no atomic. */
__device__ static void note_seen(struct bins *total, uint32_t seen)
{
    if (seen & ~*(volatile unsigned int *)&total->seen) {
        atomicOr(&total->seen, seen);
    }
}

__device__ static uint64_t load_bits(const void *data, int64_t i, int bytes)
{
    return bytes == 4 ? ((const uint32_t *)data)[i] : ((const uint16_t *)data)[i];
}

/* float32 and the 16-bit formats. */
__global__ static void narrow_kernel(const void *data, int64_t elements, int bytes,
                                     struct exact_sum_format format, struct bins *total)
{
    __shared__ struct chunk_bins bins;
    int copy = threadIdx.x % COPIES;
    uint32_t seen = 0;

    for (int64_t begin = (int64_t)blockIdx.x * CHUNK; begin < elements;
         begin += (int64_t)gridDim.x * CHUNK) {
        int64_t end = begin + CHUNK < elements ? begin + CHUNK : elements;

        chunk_clear(&bins);
        for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
            struct exact_sum_parts parts =
                exact_sum_take_apart(format, load_bits(data, i, bytes));

            atomicAdd(&bins.low[parts.bin][copy], (unsigned int)parts.low);
            atomicAdd(&bins.high[parts.bin][copy], (unsigned int)parts.high);
            seen |= parts.seen;
        }
        chunk_flush(&bins, total);
    }
    note_seen(total, seen);
}

/* Its bins do not fit shared memory. */
__global__ static void float64_kernel(const uint64_t *data, int64_t elements,
                                      struct exact_sum_format format, struct bins *total)
{
    uint32_t seen = 0;

    KERNEL_FOR(i, elements)
    {
        struct exact_sum_parts parts = exact_sum_take_apart(format, data[i]);

        if (parts.low | parts.high) {
            atomicAdd(&total->low[parts.bin], (unsigned long long)parts.low);
            atomicAdd(&total->high[parts.bin], (unsigned long long)parts.high);
        }
        seen |= parts.seen;
    }
    note_seen(total, seen);
}

__device__ static int64_t load_integer(const void *data, int64_t i, int bytes)
{
    return bytes == 8   ? ((const int64_t *)data)[i]
           : bytes == 4 ? ((const int32_t *)data)[i]
                        : ((const uint8_t *)data)[i];
}

/* High parts are negative where values are: their sum is taken modulo 2^64. */
__global__ static void integer_kernel(const void *data, int64_t elements, int bytes,
                                      struct bins *total)
{
    unsigned long long low = 0, high = 0;

    KERNEL_FOR(i, elements)
    {
        int64_t value = load_integer(data, i, bytes);

        low += (uint32_t)value;
        high += (unsigned long long)(value >> 32);
    }
    low = warp_sum(low);
    high = warp_sum(high);
    if (threadIdx.x % WARP_LANES == 0) {
        atomicAdd(&total->low[0], low);
        atomicAdd(&total->high[0], high);
    }
    note_seen(total, EXACT_SUM_OTHER);
}

void exact_sum_device_prepare(void)
{
    CUDA_TRY(cudaMalloc((void **)&device_bins, sizeof *device_bins));
}

static void launch(const struct tensor *tensor, struct exact_sum_format format)
{
    const int64_t most = 4096;
    int64_t elements = tensor_elements(tensor), chunks = ceil_div(elements, CHUNK);
    int bytes = (int)dtype_bytes(tensor->dtype);
    unsigned grid = (unsigned)(chunks < most ? chunks : most);
    const void *data = tensor->data;

    if (format.exponent_bits == 0) {
        LAUNCH(integer_kernel, grid, KERNEL_THREADS, 0, 0, data, elements, bytes,
               device_bins);
    } else if (bytes == 8) {
        LAUNCH(float64_kernel, grid, KERNEL_THREADS, 0, 0, (const uint64_t *)data,
               elements, format, device_bins);
    } else {
        LAUNCH(narrow_kernel, grid, KERNEL_THREADS, 0, 0, data, elements, bytes, format,
               device_bins);
    }
}

double exact_sum_device(struct run *run, const struct tensor *tensor)
{
    struct exact_sum sum;

    (void)run;
    CUDA_TRY(cudaMemsetAsync(device_bins, 0, sizeof *device_bins));
    launch(tensor, exact_sum_format_of((int)tensor->dtype));
    CUDA_TRY(
        cudaMemcpy(&host_bins, device_bins, sizeof host_bins, cudaMemcpyDeviceToHost));
    exact_sum_init(&sum);
    exact_sum_add_bins(&sum, (int)tensor->dtype, (const uint64_t *)host_bins.low,
                       (const uint64_t *)host_bins.high, host_bins.seen);
    return exact_sum_round(&sum);
}
