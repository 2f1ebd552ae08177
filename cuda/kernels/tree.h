/* Sums in the fixed order of workloads/shared/tree.h, by many threads: the same parts
 * meet in the same pairs, so the bits are those of the CPU's tree_sum. */
#ifndef CUDA_KERNELS_TREE_H
#define CUDA_KERNELS_TREE_H

#include "cuda/kernels/kernel.h"

/* Adds COUNT parts, STRIDE elements from each other, pairwise and in place; the sum is
 * left in part 0.  Called by all threads of a block at once, with the same COUNT.  The
 * threads that share a tree are its members, numbered MEMBER of MEMBERS; a thread without
 * a tree calls with COUNT as its MEMBER. */
__device__ static inline void tree_sum_in_block(float *parts, int64_t count,
                                                int64_t stride, int64_t member,
                                                int64_t members)
{
    int64_t half = 1;

    while (half * 2 < count) {
        half *= 2;
    }
    for (; half >= 1; half /= 2) {
        __syncthreads();
        for (int64_t part = member; part < half && part + half < count; part += members) {
            parts[part * stride] += parts[(part + half) * stride];
        }
        count = half < count ? half : count;
    }
    __syncthreads();
}

/* The same over COUNT parts, a power of two, in the registers of one thread; they stay as
 * they are. */
template <int COUNT>
__device__ static inline float tree_sum_in_thread(const float *parts, int64_t stride)
{
    float part[COUNT];

    for (int i = 0; i < COUNT; i++) {
        part[i] = parts[i * stride];
    }
#pragma unroll
    for (int half = COUNT / 2; half >= 1; half /= 2) {
        for (int i = 0; i < half; i++) {
            part[i] += part[i + half];
        }
    }
    return part[0];
}

/* The same over the values of COUNT neighbouring lanes, COUNT a power of two: the sum is
 * in the first of them. */
__device__ static inline float tree_sum_in_warp(float value, int count)
{
    for (int half = count / 2; half >= 1; half /= 2) {
        value += __shfl_down_sync(ALL_LANES, value, half, count);
    }
    return value;
}

#endif
