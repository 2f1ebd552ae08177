/* The digest: 128 bits over every bit of a tensor, its length, dtype and shape.
 *
 * The bytes are hashed in blocks of 8 KiB; what a block contributes depends on its index
 * and its contents alone, and contributions are added modulo 2^64.  So any thread, warp
 * or chunk may hash any blocks in any order and the digest is the same (digest_block.h
 * has the mathematics, shared with CUDA).  -0 and +0 differ, and so do NaN payloads.
 *
 * It finds accidents, not adversaries: two given different tensors collide with
 * probability of about 2^-64 or less, and whoever wants to can construct a collision.
 *
 * Memory order of the words is little-endian: the machines served are. */
#ifndef WORKLOADS_INSTRUMENTS_DIGEST_H
#define WORKLOADS_INSTRUMENTS_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workloads/instruments/digest_block.h"

#ifdef __cplusplus
extern "C" {
#endif

struct digest {
    uint64_t hi, lo;
};

enum { DIGEST_HEX_SIZE = 33 }; /* 32 digits and the NUL */

/* The "dtype" of plain bytes; no enum dtype has this value. */
enum { DIGEST_DTYPE_BYTES = -1 };

/* The sum over blocks [first_block, first_block + block_count) of the BYTES at DATA (any
 * alignment); blocks beyond the end contribute nothing.  BYTES is the length of the whole
 * tensor, DATA its start.  Partials of disjoint ranges are added with
 * digest_partial_add. */
struct digest_partial digest_blocks(const void *data, uint64_t bytes,
                                    uint64_t first_block, uint64_t block_count);

/* The same without AVX2 code: what digest_blocks is on a machine that lacks it. */
struct digest_partial digest_blocks_portable(const void *data, uint64_t bytes,
                                             uint64_t first_block, uint64_t block_count);

/* The digest of a tensor of BYTES bytes whose blocks sum to TOTAL.  SHAPE has RANK
 * extents, outermost first; it may be NULL when RANK is 0. */
struct digest digest_finish(struct digest_partial total, uint64_t bytes, int dtype,
                            int rank, const int64_t *shape);

/* The digest of a dense tensor on the host, with up to THREADS OpenMP threads (>= 1; the
 * digest does not depend on it).  DTYPE is an enum dtype, DTYPE_BYTES the size of one
 * element.  In digest_parallel.c, which needs OpenMP and is not part of the daemon. */
struct digest digest_tensor(const void *data, int dtype, size_t dtype_bytes, int rank,
                            const int64_t *shape, int threads);

/* A tensor to digest; as the parameters of digest_tensor. */
struct digest_source {
    const void *data;
    int dtype;
    size_t dtype_bytes;
    int rank;
    const int64_t *shape;
};

/* The digests of COUNT tensors at once, as digest_tensor has them: for many that are each
 * too small to be worth a team of threads.  Also in digest_parallel.c. */
void digest_tensors(const struct digest_source *sources, int count, int threads,
                    struct digest *ret_digests);

/* The digest of plain bytes, e.g. of a text: dtype DIGEST_DTYPE_BYTES, shape {BYTES}. */
struct digest digest_bytes(const void *data, uint64_t bytes);

/* One digest for an ordered list; depends on COUNT (which may be 0) and on the order. */
struct digest digest_combine(const struct digest *parts, int count);

/* 32 lower-case hexadecimal digits, hi first. */
void digest_hex(struct digest digest, char ret_hex[DIGEST_HEX_SIZE]);

/* Reads what digest_hex writes and nothing else (so equal digests are equal texts);
 * false, with *ret_digest untouched, for any other text. */
bool digest_parse(const char *hex, struct digest *ret_digest);

bool digest_equal(struct digest a, struct digest b);

#ifdef __cplusplus
}
#endif

#endif
