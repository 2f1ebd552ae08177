/* What one block contributes to a digest: an NH hash (Black, Halevi, Krawczyk, Krovetz,
 * Rogaway, "UMAC", CRYPTO 1999) with two independent keys, mixed with the block's index.
 *
 * A block is 1024 little-endian 64-bit words, the last block of a tensor filled up with
 * zeros.  For each of two lanes and word w at slot j with 64-bit key k(j):
 *
 *     sum += (low32(w) + low32(k) mod 2^32) * (high32(w) + high32(k) mod 2^32)  mod 2^64
 *
 * For random keys two different blocks have equal sums with probability 2^-32 a lane.
 * Addition commutes, so the words of a block may be summed in any order and by any number
 * of threads; digest_block_close() then makes the block's contribution.  C and CUDA: a
 * kernel gives a warp a block and calls the functions below. */
#ifndef WORKLOADS_INSTRUMENTS_DIGEST_BLOCK_H
#define WORKLOADS_INSTRUMENTS_DIGEST_BLOCK_H

#include <stdint.h>

#include "workloads/instruments/bits.h"
#include "workloads/instruments/hd.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "digests are defined on little-endian words"
#endif

enum { DIGEST_BLOCK_BYTES = 8192, DIGEST_BLOCK_WORDS = DIGEST_BLOCK_BYTES / 8 };

/* Sums modulo 2^64: over words of a block (lane a, lane b), or of blocks' contributions.
 */
struct digest_partial {
    uint64_t a, b;
};

/* Constants without structure: fractional parts of the golden ratio and of the square
 * roots of 2, 3 and 5, the last bit set. */
#define DIGEST_K0 0x9e3779b97f4a7c15u
#define DIGEST_K1 0x6a09e667f3bcc909u
#define DIGEST_C0 0xbb67ae8584caa73bu
#define DIGEST_C1 0x3c6ef372fe94f82bu

/* Keys of slot J, 0 <= J < DIGEST_BLOCK_WORDS, for lanes a and b. */
REPROD_HD struct digest_partial digest_key(uint32_t j)
{
    struct digest_partial key;
    key.a = mix64(j * DIGEST_K0 + DIGEST_C0);
    key.b = mix64(j * DIGEST_K1 + DIGEST_C1);
    return key;
}

REPROD_HD struct digest_partial digest_partial_add(struct digest_partial x,
                                                   struct digest_partial y)
{
    x.a += y.a;
    x.b += y.b;
    return x;
}

/* The product for word W under key KEY of one lane. */
REPROD_HD uint64_t digest_product(uint64_t w, uint64_t key)
{
    uint32_t low = (uint32_t)w + (uint32_t)key;
    uint32_t high = (uint32_t)(w >> 32) + (uint32_t)(key >> 32);
    return (uint64_t)low * high;
}

/* The contribution of block BLOCK whose words sum to SUMS. */
REPROD_HD struct digest_partial digest_block_close(struct digest_partial sums,
                                                   uint64_t block)
{
    uint64_t p = mix64(sums.a ^ (block * DIGEST_K0 + DIGEST_C1));
    uint64_t q = mix64(sums.b ^ (block * DIGEST_K1 + DIGEST_C0));
    struct digest_partial mixed;
    mixed.a = mix64(p + 0x9ddfea08eb382d69u * q);
    mixed.b = mix64(q ^ (p << 32 | p >> 32));
    return mixed;
}

#endif
