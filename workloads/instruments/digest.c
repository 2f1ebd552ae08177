#include "workloads/instruments/digest.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "workloads/instruments/bits.h"

static _Alignas(64) uint64_t keys_a[DIGEST_BLOCK_WORDS], keys_b[DIGEST_BLOCK_WORDS];

typedef struct digest_partial block_sums_fn(const unsigned char *block);

static struct digest_partial block_sums_portable(const unsigned char *block)
{
    struct digest_partial sums = { 0, 0 };

    for (int j = 0; j < DIGEST_BLOCK_WORDS; j++) {
        uint64_t word;

        memcpy(&word, block + 8 * j, sizeof word);
        sums.a += digest_product(word, keys_a[j]);
        sums.b += digest_product(word, keys_b[j]);
    }
    return sums;
}

static block_sums_fn *block_sums = block_sums_portable;

#if defined(__x86_64__)
__attribute__((target("avx2"))) static uint64_t add_lanes(__m256i sums)
{
    __m128i pair =
        _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    return (uint64_t)_mm_cvtsi128_si64(pair) + (uint64_t)_mm_extract_epi64(pair, 1);
}

/* Four words at a time; the shift brings the upper halves to where vpmuludq reads. */
__attribute__((target("avx2"))) static __m256i products(__m256i words,
                                                        const uint64_t *keys)
{
    __m256i keyed = _mm256_add_epi32(words, _mm256_load_si256((const __m256i *)keys));
    return _mm256_mul_epu32(keyed, _mm256_srli_epi64(keyed, 32));
}

/* Hardware prefetching stops at page boundaries, which this loop is fast enough to feel.
 * Integer arithmetic because the address may lie beyond the data; prefetches never fault.
 */
enum { PREFETCH_AHEAD_BYTES = 1024 };

__attribute__((target("avx2"))) static struct digest_partial
block_sums_avx2(const unsigned char *block)
{
    __m256i a0 = _mm256_setzero_si256(), a1 = a0, b0 = a0, b1 = a0;
    struct digest_partial sums;
    for (int j = 0; j < DIGEST_BLOCK_WORDS; j += 8) {
        const __m256i *at = (const __m256i *)(const void *)(block + 8 * j);
        __m256i first;
        __m256i second;
        _mm_prefetch((const char *)((uintptr_t)at + PREFETCH_AHEAD_BYTES), _MM_HINT_T0);
        first = _mm256_loadu_si256(at);
        second = _mm256_loadu_si256(at + 1);
        a0 = _mm256_add_epi64(a0, products(first, keys_a + j));
        b0 = _mm256_add_epi64(b0, products(first, keys_b + j));
        a1 = _mm256_add_epi64(a1, products(second, keys_a + j + 4));
        b1 = _mm256_add_epi64(b1, products(second, keys_b + j + 4));
    }
    sums = (struct digest_partial){ add_lanes(_mm256_add_epi64(a0, a1)),
                                    add_lanes(_mm256_add_epi64(b0, b1)) };
    return sums;
}
#endif

/* Before main, so that no thread ever meets a half-made table. */
__attribute__((constructor)) static void digest_prepare(void)
{
    for (uint32_t j = 0; j < DIGEST_BLOCK_WORDS; j++) {
        struct digest_partial key = digest_key(j);

        keys_a[j] = key.a;
        keys_b[j] = key.b;
    }
#if defined(__x86_64__)
    __builtin_cpu_init();
    /* never false: where tests are run; they compare both sums of a block */
    if (__builtin_cpu_supports("avx2")) {
        block_sums = block_sums_avx2;
    }
#endif
}

static struct digest_partial sum_blocks(block_sums_fn *sums_of, const void *data,
                                        uint64_t bytes, uint64_t first_block,
                                        uint64_t block_count)
{
    struct digest_partial total = { 0, 0 };
    uint64_t whole = bytes / DIGEST_BLOCK_BYTES, tail = bytes % DIGEST_BLOCK_BYTES;
    uint64_t blocks = whole + (tail != 0);
    uint64_t end = first_block >= blocks || block_count >= blocks - first_block
                       ? blocks
                       : first_block + block_count;
    const unsigned char *start = data;

    for (uint64_t block = first_block; block < end; block++) {
        unsigned char padded[DIGEST_BLOCK_BYTES];
        const unsigned char *at = start + block * DIGEST_BLOCK_BYTES;

        if (block == whole) {
            memcpy(padded, at, tail);
            memset(padded + tail, 0, sizeof padded - tail);
            at = padded;
        }
        total = digest_partial_add(total, digest_block_close(sums_of(at), block));
    }
    return total;
}

struct digest_partial digest_blocks(const void *data, uint64_t bytes,
                                    uint64_t first_block, uint64_t block_count)
{
    return sum_blocks(block_sums, data, bytes, first_block, block_count);
}

struct digest_partial digest_blocks_portable(const void *data, uint64_t bytes,
                                             uint64_t first_block, uint64_t block_count)
{
    return sum_blocks(block_sums_portable, data, bytes, first_block, block_count);
}

/* For a fixed WORD a permutation of 128-bit states, so nothing absorbed later undoes a
 * difference. */
static struct digest absorb(struct digest state, uint64_t word)
{
    state.hi = mix64(state.hi ^ (word * DIGEST_K0 + DIGEST_C0)) + state.lo;
    state.lo = mix64(state.lo + (word ^ DIGEST_C1) * DIGEST_K1) ^ state.hi;
    return state;
}

struct digest digest_finish(struct digest_partial total, uint64_t bytes, int dtype,
                            int rank, const int64_t *shape)
{
    struct digest digest = { total.a, total.b };

    digest = absorb(digest, bytes);
    digest = absorb(digest, (uint64_t)dtype);
    digest = absorb(digest, (uint64_t)rank);
    for (int i = 0; i < rank; i++) {
        digest = absorb(digest, (uint64_t)shape[i]);
    }
    return digest;
}

struct digest digest_bytes(const void *data, uint64_t bytes)
{
    int64_t shape = (int64_t)bytes;
    struct digest_partial total = digest_blocks(data, bytes, 0, UINT64_MAX);

    return digest_finish(total, bytes, DIGEST_DTYPE_BYTES, 1, &shape);
}

struct digest digest_combine(const struct digest *parts, int count)
{
    struct digest digest = { DIGEST_C0, DIGEST_C1 };

    digest = absorb(digest, (uint64_t)count);
    for (int i = 0; i < count; i++) {
        digest = absorb(digest, parts[i].hi);
        digest = absorb(digest, parts[i].lo);
    }
    return digest;
}

void digest_hex(struct digest digest, char ret_hex[DIGEST_HEX_SIZE])
{
    for (int i = 0; i < DIGEST_HEX_SIZE - 1; i++) {
        uint64_t word = i < 16 ? digest.hi : digest.lo;

        ret_hex[i] = "0123456789abcdef"[word >> (60 - 4 * (i % 16)) & 15u];
    }
    ret_hex[DIGEST_HEX_SIZE - 1] = '\0';
}

bool digest_parse(const char *hex, struct digest *ret_digest)
{
    uint64_t words[2] = { 0, 0 };

    for (int i = 0; i < DIGEST_HEX_SIZE - 1; i++) {
        char c = hex[i];
        bool decimal = c >= '0' && c <= '9';

        if (!decimal && (c < 'a' || c > 'f')) {
            return false;
        }
        words[i / 16] = words[i / 16] << 4 | (uint64_t)(decimal ? c - '0' : c - 'a' + 10);
    }
    if (hex[DIGEST_HEX_SIZE - 1] != '\0') {
        return false;
    }
    *ret_digest = (struct digest){ words[0], words[1] };
    return true;
}

bool digest_equal(struct digest a, struct digest b)
{
    return a.hi == b.hi && a.lo == b.lo;
}
