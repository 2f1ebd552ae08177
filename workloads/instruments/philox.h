/* The generator of all inputs: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel
 * random numbers: as easy as 1, 2, 3", SC 2011; the constants and test vectors are those
 * of Random123).  Counter-based: every value is a pure function of (seed, stream, element
 * index), so any thread of any backend computes any element, with the same bits.  No
 * state, no libm, and no floating-point operation that rounds.  C and CUDA.
 *
 * One tensor uses one kind of value: different kinds read the same random words. */
#ifndef WORKLOADS_INSTRUMENTS_PHILOX_H
#define WORKLOADS_INSTRUMENTS_PHILOX_H

#include <stdint.h>

#include "workloads/instruments/bits.h"
#include "workloads/instruments/hd.h"

struct philox {
    uint32_t v[4];
};

/* Four random words for a key and a 128-bit counter.  Random123's key and counter arrays
 * are the words from the least significant one upwards. */
REPROD_HD struct philox philox4x32(uint64_t key, uint64_t counter_hi, uint64_t counter_lo)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)counter_lo, c1 = (uint32_t)(counter_lo >> 32);
    uint32_t c2 = (uint32_t)counter_hi, c3 = (uint32_t)(counter_hi >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xd2511f53u * c0;
        uint64_t p1 = (uint64_t)0xcd9e8d57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    struct philox words = { { c0, c1, c2, c3 } };
    return words;
}

/* The stream of the tensor named TENSOR of the workload named WORKLOAD: FNV-1a over both
 * names with their NULs, started from the seed and mixed. */
REPROD_HD uint64_t philox_stream(uint64_t seed, const char *workload, const char *tensor)
{
    const char *names[2] = { workload, tensor };
    uint64_t hash = mix64(seed ^ 0xcbf29ce484222325u);
    for (int i = 0; i < 2; i++) {
        const char *c = names[i];
        do {
            hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
        } while (*c++);
    }
    return mix64(hash);
}

/* The first (WHICH 0) or second 64 bits of a block. */
REPROD_HD uint64_t philox_half(struct philox words, unsigned which)
{
    uint64_t low = (uint64_t)words.v[1] << 32 | words.v[0];
    uint64_t high = (uint64_t)words.v[3] << 32 | words.v[2];
    return which ? high : low;
}

/* The 32-bit word of an element: word index % 4 of block index / 4. */
REPROD_HD uint32_t philox_u32(uint64_t seed, uint64_t stream, uint64_t index)
{
    return philox4x32(seed, stream, index >> 2).v[index & 3u];
}

/* The 64-bit word of an element: half index % 2 of block index / 2. */
REPROD_HD uint64_t philox_u64(uint64_t seed, uint64_t stream, uint64_t index)
{
    return philox_half(philox4x32(seed, stream, index >> 1), index & 1u);
}

/* Uniform over the 2^24 multiples of 2^-23 in [-1, 1). */
REPROD_HD float philox_uniform_f32_of(uint32_t word)
{
    return (float)((int32_t)(word >> 8) - (1 << 23)) * 0x1p-23f;
}

REPROD_HD float philox_uniform_f32(uint64_t seed, uint64_t stream, uint64_t index)
{
    return philox_uniform_f32_of(philox_u32(seed, stream, index));
}

/* Uniform over the 2^54 multiples of 2^-53 in [-1, 1). */
REPROD_HD double philox_uniform_f64_of(uint64_t word)
{
    return (double)((int64_t)(word >> 10) - ((int64_t)1 << 53)) * 0x1p-53;
}

REPROD_HD double philox_uniform_f64(uint64_t seed, uint64_t stream, uint64_t index)
{
    return philox_uniform_f64_of(philox_u64(seed, stream, index));
}

/* An exponent uniform in -12 .. 12 (no value is likelier than another by more than
 * 2^-27 of its probability). */
REPROD_HD int32_t philox_wide_exponent(uint32_t word)
{
    return (int32_t)((uint64_t)word * 25u >> 32) - 12;
}

/* Random sign, mantissa uniform in [1, 2), exponent uniform in -12 .. 12. */
REPROD_HD float philox_wide_f32_of(uint64_t word)
{
    uint32_t biased = (uint32_t)(philox_wide_exponent((uint32_t)(word >> 32)) + 127);
    uint32_t sign_and_fraction = (uint32_t)word & 0x807fffffu;
    return f32_from_bits(sign_and_fraction | biased << 23);
}

REPROD_HD float philox_wide_f32(uint64_t seed, uint64_t stream, uint64_t index)
{
    return philox_wide_f32_of(philox_u64(seed, stream, index));
}

/* The same in float64; reads a whole block an element. */
REPROD_HD double philox_wide_f64_of(struct philox words)
{
    uint64_t biased = (uint64_t)(uint32_t)(philox_wide_exponent(words.v[2]) + 1023);
    return f64_from_bits((philox_half(words, 0) & 0x800fffffffffffffu) | biased << 52);
}

REPROD_HD double philox_wide_f64(uint64_t seed, uint64_t stream, uint64_t index)
{
    return philox_wide_f64_of(philox4x32(seed, stream, index));
}

/* An integer in [0, LIMIT), LIMIT >= 1: the upper half of the 128-bit product of a random
 * 64-bit word and LIMIT.  Without rejection, so that one index costs one block: the
 * probability of any value is off by less than 2^-64, or LIMIT / 2^64 of itself. */
REPROD_HD uint64_t philox_index_of(uint64_t word, uint64_t limit)
{
    uint64_t w0 = (uint32_t)word, w1 = word >> 32;
    uint64_t l0 = (uint32_t)limit, l1 = limit >> 32;
    uint64_t middle = w1 * l0 + (w0 * l0 >> 32);
    uint64_t low_middle = w0 * l1 + (uint32_t)middle;
    return w1 * l1 + (middle >> 32) + (low_middle >> 32);
}

REPROD_HD uint64_t philox_index(uint64_t seed, uint64_t stream, uint64_t index,
                                uint64_t limit)
{
    return philox_index_of(philox_u64(seed, stream, index), limit);
}

#endif
