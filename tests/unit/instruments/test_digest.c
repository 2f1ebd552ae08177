/* The digest sees every bit and the tensor's description, and nothing else: not threads,
 * chunks, alignment, instruction set or what lies behind the end. */
#include "workloads/instruments/digest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "workloads/instruments/philox.h"
#include "workloads/workload.h"

enum { MEBIBYTE = 1 << 20, ALL = 1 << 30 };

/* Fresh memory with bytes of a fixed stream; the caller frees. */
static unsigned char *random_bytes(size_t bytes)
{
    unsigned char *data = malloc(bytes + 8);
    assert_non_null(data);
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = philox_u64(7, 7, i / 8);
        memcpy(data + i, &word, sizeof word);
    }
    return data;
}

static struct digest finish(struct digest_partial total, uint64_t bytes, int dtype)
{
    int64_t shape = (int64_t)bytes;
    return digest_finish(total, bytes, dtype, 1, &shape);
}

static void assert_partial_equal(struct digest_partial a, struct digest_partial b)
{
    assert_true(a.a == b.a && a.b == b.b);
}

static void assert_all_distinct(const struct digest *digests, int count)
{
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < i; j++) {
            if (digest_equal(digests[i], digests[j])) {
                fail_msg("digests %d and %d are equal", j, i);
            }
        }
    }
}

static long flips_missed(unsigned char *data, uint64_t block)
{
    struct digest_partial total = digest_blocks(data, MEBIBYTE, 0, ALL);
    struct digest_partial before = digest_blocks(data, MEBIBYTE, block, 1);
    struct digest unchanged[DTYPE_COUNT];
    long missed = 0;
    unsigned char *start;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        unchanged[dtype] = finish(total, MEBIBYTE, dtype);
    }

    start = data + block * DIGEST_BLOCK_BYTES;
    for (int bit = 0; bit < 8 * DIGEST_BLOCK_BYTES; bit++) {
        struct digest_partial after;
        struct digest_partial changed;

        start[bit / 8] ^= (unsigned char)(1 << bit % 8);
        after = digest_blocks(data, MEBIBYTE, block, 1);
        changed = (struct digest_partial){ total.a - before.a + after.a,
                                           total.b - before.b + after.b };
        for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
            missed += digest_equal(finish(changed, MEBIBYTE, dtype), unchanged[dtype]) ||
                      after.a == before.a || after.b == before.b;
        }
        start[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    return missed;
}

static void test_every_bit_flip(void **state)
{
    unsigned char *data;
    long missed = 0;

    (void)state;
    data = random_bytes(MEBIBYTE);
    for (uint64_t block = 0; block < MEBIBYTE / DIGEST_BLOCK_BYTES; block++) {
        missed += flips_missed(data, block);
    }
    assert_int_equal(missed, 0);
    free(data);
}

/* Updating one block's part is what the test above does; here it is shown to be right,
 * also for the least random buffer. */
static void test_flips_from_scratch(void **state)
{
    enum { SIZE = 3 * DIGEST_BLOCK_BYTES + 8, FLIPS = 8 * 25 };
    static unsigned char zeros[SIZE];
    struct digest digests[FLIPS + 1];

    (void)state;
    digests[FLIPS] = digest_bytes(zeros, SIZE);
    for (int i = 0; i < FLIPS; i++) {
        int byte = i / 8 * (SIZE - 1) / 24;
        zeros[byte] ^= (unsigned char)(1 << i % 8);
        digests[i] = digest_bytes(zeros, SIZE);
        zeros[byte] ^= (unsigned char)(1 << i % 8);
    }
    assert_all_distinct(digests, FLIPS + 1);
}

static void test_exchanges(void **state)
{
    enum { SIZE = 4 * DIGEST_BLOCK_BYTES };
    unsigned char *data = random_bytes(SIZE), *moved = malloc(SIZE);
    struct digest digests[4] = { digest_bytes(data, SIZE) };

    (void)state;
    assert_non_null(moved);
    memcpy(moved, data, SIZE); /* two blocks */
    memcpy(moved, data + DIGEST_BLOCK_BYTES, DIGEST_BLOCK_BYTES);
    memcpy(moved + DIGEST_BLOCK_BYTES, data, DIGEST_BLOCK_BYTES);
    digests[1] = digest_bytes(moved, SIZE);
    memcpy(moved, data, SIZE); /* two words */
    memcpy(moved + 80, data + 160, 8);
    memcpy(moved + 160, data + 80, 8);
    digests[2] = digest_bytes(moved, SIZE);
    memcpy(moved, data, SIZE); /* the halves of a word */
    memcpy(moved + 4000, data + 4004, 4);
    memcpy(moved + 4004, data + 4000, 4);
    digests[3] = digest_bytes(moved, SIZE);
    assert_all_distinct(digests, 4);
    free(data);
    free(moved);
}

static void test_description(void **state)
{
    static const unsigned char data[64];
    static const struct {
        int rank;
        int64_t shape[TENSOR_RANK_MAX];
    } shapes[] = { { 0, { 0 } },       { 1, { 48 } },        { 2, { 1, 48 } },
                   { 2, { 48, 1 } },   { 2, { 6, 8 } },      { 2, { 8, 6 } },
                   { 3, { 6, 8, 1 } }, { 3, { 1, 6, 8 } },   { 3, { 2, 3, 8 } },
                   { 1, { 47 } },      { 4, { 2, 3, 4, 2 } } };
    struct digest digests[(DTYPE_COUNT + 1) * COUNT_OF(shapes) * 2];
    int count = 0;

    (void)state;
    for (int dtype = DIGEST_DTYPE_BYTES; dtype < DTYPE_COUNT; dtype++) {
        for (int i = 0; i < COUNT_OF(shapes); i++) {
            for (uint64_t bytes = 48; bytes < 50; bytes++) {
                digests[count++] = digest_finish(digest_blocks(data, bytes, 0, 1), bytes,
                                                 dtype, shapes[i].rank, shapes[i].shape);
            }
        }
    }
    assert_int_equal(count, COUNT_OF(digests));
    assert_all_distinct(digests, count);
}

static void test_many_at_once(void **state)
{
    enum { MANY = 150 };
    static int64_t sizes[MANY];
    struct digest_source sources[MANY];
    struct digest digests[MANY];
    unsigned char *data;

    (void)state;
    data = random_bytes(3 * MEBIBYTE);
    for (int i = 0; i < MANY; i++) {
        sizes[i] = i % 7 == 0 ? 0 : (int64_t)i * i * 130 + i;
        sources[i] = (struct digest_source){ data, DTYPE_UINT8, 1, 1, &sizes[i] };
    }
    for (int threads = 1; threads <= 3; threads++) {
        digest_tensors(sources, MANY, threads, digests);
        for (int i = 0; i < MANY; i++) {
            assert_true(digest_equal(
                digests[i], digest_tensor(data, DTYPE_UINT8, 1, 1, &sizes[i], 1)));
        }
    }
    free(data);
}

static void test_threads_and_chunks(void **state)
{
    static const int64_t sizes[] = {
        1, 8191, 8192, 8193, MEBIBYTE, 5 * MEBIBYTE, 2 * MEBIBYTE + 1, 3 * MEBIBYTE - 1
    };
    unsigned char *data;

    (void)state;
    data = random_bytes(5 * MEBIBYTE);
    for (int i = 0; i < COUNT_OF(sizes); i++) {
        uint64_t bytes = (uint64_t)sizes[i];
        struct digest_partial whole = digest_blocks_portable(data, bytes, 0, ALL);
        struct digest expected = finish(whole, bytes, DTYPE_UINT8);
        for (int threads = 1; threads <= 8; threads++) {
            assert_true(digest_equal(
                digest_tensor(data, DTYPE_UINT8, 1, 1, &sizes[i], threads), expected));
        }
        for (uint64_t step = 1; step < 700; step = 2 * step + 1) {
            struct digest_partial total = { 0, 0 };
            uint64_t blocks = bytes / DIGEST_BLOCK_BYTES + 1;
            for (uint64_t from = blocks / step * step + step; from > 0; from -= step) {
                total = digest_partial_add(total,
                                           digest_blocks(data, bytes, from - step, step));
            }
            assert_partial_equal(total, whole);
        }
    }
    free(data);
}

static void test_ranges_beyond_the_end(void **state)
{
    unsigned char *data;
    struct digest_partial none = { 0, 0 };

    (void)state;
    data = random_bytes(MEBIBYTE);
    assert_partial_equal(digest_blocks(data, MEBIBYTE, 128, 1), none);
    assert_partial_equal(digest_blocks(data, MEBIBYTE, UINT64_MAX, UINT64_MAX), none);
    assert_partial_equal(digest_blocks(data, MEBIBYTE, 0, 0), none);
    assert_partial_equal(digest_blocks(data, MEBIBYTE, 127, UINT64_MAX),
                         digest_blocks(data, MEBIBYTE, 127, 1));
    free(data);
}

/* Exact-size heap blocks, so that a sanitizer sees any read behind the end. */
static void test_every_tail(void **state)
{
    enum { LONGEST = 2 * DIGEST_BLOCK_BYTES };
    unsigned char *source;
    struct digest previous;

    (void)state;
    source = random_bytes(LONGEST);
    previous = digest_bytes(source, 0);
    for (uint64_t bytes = 1; bytes <= LONGEST; bytes++) {
        unsigned char *exact = malloc(bytes);
        struct digest_partial partial;
        struct digest digest;
        assert_non_null(exact);
        memcpy(exact, source, bytes);
        partial = digest_blocks(exact, bytes, 0, ALL);
        assert_partial_equal(partial, digest_blocks_portable(source, bytes, 0, ALL));
        digest = digest_bytes(exact, bytes);
        assert_false(digest_equal(digest, previous));
        previous = digest;
        free(exact);
    }
    free(source);
}

/* A zero at the end is not the padding. */
static void test_zeros_count(void **state)
{
    static const unsigned char zeros[600];
    struct digest digests[600];

    (void)state;
    for (uint64_t bytes = 0; bytes < 600; bytes++) {
        digests[bytes] = digest_bytes(zeros, bytes);
    }
    assert_all_distinct(digests, 600);
    assert_true(digest_equal(digest_bytes(NULL, 0), digests[0]));
}

static void test_alignment(void **state)
{
    enum { SIZE = 3 * DIGEST_BLOCK_BYTES + 77 };
    struct digest expected;
    unsigned char *data = random_bytes(SIZE), *shifted = malloc(SIZE + 64);

    (void)state;
    assert_non_null(shifted);
    expected = digest_bytes(data, SIZE);
    for (int offset = 0; offset < 64; offset++) {
        memcpy(shifted + offset, data, SIZE);
        assert_true(digest_equal(digest_bytes(shifted + offset, SIZE), expected));
        assert_partial_equal(digest_blocks_portable(shifted + offset, SIZE, 0, ALL),
                             digest_blocks(data, SIZE, 0, ALL));
    }
    free(data);
    free(shifted);
}

static void test_combine(void **state)
{
    struct digest a = digest_bytes("a", 1), b = digest_bytes("b", 1);
    const struct digest ab[] = { a, b, a }, ba[] = { b, a }, aa[] = { a, a };
    struct digest digests[] = { a,
                                b,
                                digest_combine(NULL, 0),
                                digest_combine(ab, 1),
                                digest_combine(ba, 1),
                                digest_combine(ab, 2),
                                digest_combine(ba, 2),
                                digest_combine(aa, 2),
                                digest_combine(ab, 3),
                                { 0, 0 } };

    (void)state;
    assert_all_distinct(digests, COUNT_OF(digests));
    assert_true(digest_equal(digest_combine(ab, 2), digest_combine(ab, 2)));
}

/* Digests are stored and compared for years: no release may compute others. */
static void test_digests_never_change(void **state)
{
    enum { SIZE = 20 * DIGEST_BLOCK_BYTES + 77 };
    static const int64_t shape[] = { 3, 5, SIZE / 15 };
    unsigned char *data = random_bytes(SIZE);
    struct digest digests[] = {
        digest_bytes(NULL, 0),
        digest_bytes("abc", 3),
        digest_bytes(data, SIZE),
        digest_finish(digest_blocks_portable(data, SIZE, 0, ALL), SIZE, DTYPE_FLOAT32, 3,
                      shape),
        digest_finish(digest_blocks(data, SIZE, 3, 9), SIZE, DTYPE_FLOAT16, 0, shape),
        { 0, 0 },
    };
    static const char *const expected[] = {
        "1e31634165abf1f2e7c8f73fd07dae0f", "642c8b79f4948dd67a124f8d4f111561",
        "bf5eb70d45382f80944ee90e3f944ef0", "0dea365d6b6701973aec7dfcad2ca806",
        "4cd8af6165b3541d5e9d88f7b2c0ce5c", "a49bc79e4d2c7392245b42e87904ffe3"
    };

    (void)state;
    digests[5] = digest_combine(digests, 5);
    for (int i = 0; i < COUNT_OF(expected); i++) {
        char hex[DIGEST_HEX_SIZE];

        digest_hex(digests[i], hex);
        assert_string_equal(hex, expected[i]);
    }
    free(data);
}

static void test_hex(void **state)
{
    static const char *const refused[] = {
        "",
        "0123456789abcdef0011223344556677 ",
        "0123456789abcdef00112233445566777",
        "0123456789abcdef001122334455667",
        "0123456789ABCDEF0011223344556677",
        "0123456789abcdeg0011223344556677",
        "0x23456789abcdef0011223344556677",
        "-123456789abcdef0011223344556677",
    };
    struct digest digest, read;
    char hex[DIGEST_HEX_SIZE];

    (void)state;
    digest = (struct digest){ 0x0123456789abcdefu, 0x0011223344556677u };
    read = (struct digest){ 1, 2 };
    digest_hex(digest, hex);
    assert_string_equal(hex, "0123456789abcdef0011223344556677");
    for (int i = 0; i < COUNT_OF(refused); i++) {
        assert_false(digest_parse(refused[i], &read));
    }
    assert_true(read.hi == 1 && read.lo == 2);
    assert_true(digest_parse(hex, &read));
    assert_true(digest_equal(read, digest));
    assert_false(digest_equal(read, (struct digest){ digest.hi, digest.lo ^ 1 }));
    assert_false(digest_equal(read, (struct digest){ digest.hi ^ 1, digest.lo }));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flips_from_scratch),
        cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_description),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_threads_and_chunks),
        cmocka_unit_test(test_ranges_beyond_the_end),
        cmocka_unit_test(test_every_tail),
        cmocka_unit_test(test_zeros_count),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_combine),
        cmocka_unit_test(test_digests_never_change),
        cmocka_unit_test(test_hex),
        cmocka_unit_test(test_every_bit_flip), /* takes longest */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
