#include "cuda/worker/digest.h"

#include "cuda/kernels/kernel.h"
#include "cuda/worker/device.h"
#include "workloads/instruments/digest_block.h"

/* A load of 16 bytes is two words; a lane has every 32nd pair of a block. */
enum {
    WORDS_A_LOAD = 2,
    PAIRS = DIGEST_BLOCK_WORDS / WORDS_A_LOAD,
    WARPS = KERNEL_THREADS / WARP_LANES
};

static unsigned long long *device_total; /* lanes a and b */

/* The keys of a lane of the hash, pair by pair: a warp reads them without conflicts. */
struct keys {
    ulonglong2 a[PAIRS], b[PAIRS];
};

__device__ static void keys_fill(struct keys *keys)
{
    for (uint32_t pair = threadIdx.x; pair < PAIRS; pair += blockDim.x) {
        struct digest_partial first = digest_key(WORDS_A_LOAD * pair);
        struct digest_partial second = digest_key(WORDS_A_LOAD * pair + 1);

        keys->a[pair].x = first.a;
        keys->a[pair].y = second.a;
        keys->b[pair].x = first.b;
        keys->b[pair].y = second.b;
    }
    __syncthreads();
}

__device__ static void pair_add(struct digest_partial *sums, const struct keys *keys,
                                int pair, ulonglong2 words)
{
    sums->a += digest_product(words.x, keys->a[pair].x);
    sums->a += digest_product(words.y, keys->a[pair].y);
    sums->b += digest_product(words.x, keys->b[pair].x);
    sums->b += digest_product(words.y, keys->b[pair].y);
}

/* One lane's share of a whole block at DATA, which is aligned to 16. */
__device__ static struct digest_partial whole_sums(const struct keys *keys,
                                                   const unsigned char *data, int lane)
{
    const ulonglong2 *pairs = (const ulonglong2 *)data;
    struct digest_partial sums = { 0, 0 };
#pragma unroll 8
    for (int pair = lane; pair < PAIRS; pair += WARP_LANES) {
        pair_add(&sums, keys, pair, pairs[pair]);
    }
    return sums;
}

/* The word at byte AT of BYTES, zeros behind the end. */
__device__ static unsigned long long cut_word(const unsigned char *data, int64_t bytes,
                                              int64_t at)
{
    unsigned long long word = 0;

    for (int64_t i = at; i < at + 8 && i < bytes; i++) {
        word |= (unsigned long long)data[i] << (8 * (i - at));
    }
    return word;
}

/* One lane's share of the last block, of which only BYTES are there. */
__device__ static struct digest_partial
cut_sums(const struct keys *keys, const unsigned char *data, int64_t bytes, int lane)
{
    struct digest_partial sums = { 0, 0 };

    for (int pair = lane; pair < PAIRS; pair += WARP_LANES) {
        ulonglong2 words;
        words.x = cut_word(data, bytes, 16 * (int64_t)pair);
        words.y = cut_word(data, bytes, 16 * (int64_t)pair + 8);
        pair_add(&sums, keys, pair, words);
    }
    return sums;
}

/* Each warp takes blocks of the digest.  The sums are integers, so the order of the
 * atomic adds does not matter. */
__global__ static void digest_kernel(const unsigned char *data, int64_t bytes,
                                     unsigned long long *total)
{
    __shared__ struct keys keys;
    int lane = threadIdx.x % WARP_LANES;
    int64_t blocks = ceil_div(bytes, DIGEST_BLOCK_BYTES);
    struct digest_partial mine = { 0, 0 };

    keys_fill(&keys);
    for (int64_t block = kernel_thread() / WARP_LANES; block < blocks;
         block += kernel_threads() / WARP_LANES) {
        const unsigned char *start = data + block * DIGEST_BLOCK_BYTES;
        int64_t rest = bytes - block * DIGEST_BLOCK_BYTES;
        struct digest_partial sums = rest >= DIGEST_BLOCK_BYTES
                                         ? whole_sums(&keys, start, lane)
                                         : cut_sums(&keys, start, rest, lane);

        sums.a = warp_sum(sums.a);
        sums.b = warp_sum(sums.b);
        mine = digest_partial_add(mine, digest_block_close(sums, (uint64_t)block));
    }
    if (lane == 0) {
        atomicAdd(&total[0], (unsigned long long)mine.a);
        atomicAdd(&total[1], (unsigned long long)mine.b);
    }
}

void digest_device_prepare(void)
{
    CUDA_TRY(cudaMalloc((void **)&device_total, 2 * sizeof *device_total));
}

/* Enough to fill the device, and few enough that making keys costs nothing. */
static unsigned grid_for(int64_t bytes)
{
    enum { THREAD_BLOCKS_A_MULTIPROCESSOR = 8 };
    int64_t most =
        (int64_t)device_opened()->multiProcessorCount * THREAD_BLOCKS_A_MULTIPROCESSOR;
    int64_t wanted = ceil_div(ceil_div(bytes, DIGEST_BLOCK_BYTES), WARPS);
    return (unsigned)(wanted < most ? wanted : most);
}

struct digest digest_device(struct run *run, const struct tensor *tensor)
{
    unsigned long long total[2] = { 0, 0 };
    int64_t bytes = tensor_elements(tensor) * (int64_t)dtype_bytes(tensor->dtype);
    struct digest_partial partial;

    (void)run;
    if (device_has_failed()) { /* the run ends, and says what it can */
        struct digest none = { 0, 0 };
        return none;
    }
    CUDA_TRY(cudaMemsetAsync(device_total, 0, sizeof total));
    LAUNCH(digest_kernel, grid_for(bytes), KERNEL_THREADS, 0, 0,
           (const unsigned char *)tensor->data, bytes, device_total);
    CUDA_TRY(cudaMemcpy(total, device_total, sizeof total, cudaMemcpyDeviceToHost));
    partial.a = total[0];
    partial.b = total[1];
    return digest_finish(partial, (uint64_t)bytes, (int)tensor->dtype, tensor->rank,
                         tensor->shape);
}
