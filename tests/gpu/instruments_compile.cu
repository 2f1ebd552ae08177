/* Compiled, never run: the instruments' headers serve device code, and the digest's block
 * functions are what a kernel needs.  One warp a block of the digest. */
#include "workloads/instruments/digest.h"
#include "workloads/instruments/digest_block.h"
#include "workloads/instruments/exact_sum.h"
#include "workloads/instruments/half.h"
#include "workloads/instruments/philox.h"

__device__ static uint64_t warp_sum(uint64_t value)
{
    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, step);
    }
    return value;
}

__global__ void digest_kernel(const uint64_t *words, unsigned long long *total)
{
    uint64_t block = blockIdx.x;
    struct digest_partial sums = { 0, 0 };
    for (uint32_t j = threadIdx.x; j < DIGEST_BLOCK_WORDS; j += 32) {
        struct digest_partial key = digest_key(j);
        uint64_t word = words[block * DIGEST_BLOCK_WORDS + j];
        struct digest_partial product = { digest_product(word, key.a),
                                          digest_product(word, key.b) };
        sums = digest_partial_add(sums, product);
    }
    sums.a = warp_sum(sums.a);
    sums.b = warp_sum(sums.b);
    struct digest_partial closed = digest_block_close(sums, block);
    if (threadIdx.x == 0) {
        atomicAdd(&total[0], (unsigned long long)closed.a);
        atomicAdd(&total[1], (unsigned long long)closed.b);
    }
}

__global__ void fill_kernel(float *f32, double *f64, uint16_t *f16, uint16_t *bf16,
                            uint64_t *index, uint64_t seed, uint64_t stream)
{
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    f32[i] = philox_uniform_f32(seed, stream, i) + philox_wide_f32(seed, stream, i);
    f64[i] = philox_uniform_f64(seed, stream, i) + philox_wide_f64(seed, stream, i);
    index[i] = philox_index(seed, stream, i, 1000) + philox_stream(seed, "w", "x");
    f16[i] = f16_from_f32(f32_from_bf16(bf16[i]));
    bf16[i] = bf16_from_f32(f32_from_f16(f16[i]));
}
