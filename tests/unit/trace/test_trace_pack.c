/* Packed traces: nothing is lost, a regular one is small, and no other bytes are taken.
 */
#include "daemon/trace/trace_pack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "daemon/base/mem.h"

static struct digest digest_of(uint64_t n)
{
    return digest_bytes(&n, sizeof n);
}

/* A training: each of STEPS steps reads data and runs PLACES places, each of which reads
 * what the one before wrote. */
static void make_regular(struct trace *t, int steps, int places)
{
    static const struct digest nothing = { 0, 0 };
    uint64_t n = 0;
    char name[32];

    trace_init(t);
    for (int step = 0; step < steps; step++) {
        trace_add(t, 0, step, "data/batch", nothing, digest_of(++n));
        for (int i = 1; i < places; i++, n++) {
            snprintf(name, sizeof name, "layer%d/forward", i);
            trace_add(t, 0, step, name, digest_of(n), digest_of(n + 1));
        }
    }
}

static uint64_t next(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return *random >> 33;
}

/* Anything goes: jumps in steps and iterations, few or many places, repeated digests. */
static void make_wild(struct trace *t, uint64_t seed, int records)
{
    uint64_t random = seed;
    char name[32];

    trace_init(t);
    for (int i = 0; i < records; i++) {
        uint64_t kind = next(&random) % 8;
        int64_t step = kind == 0 ? INT64_MAX - (int64_t)(next(&random) % 3)
                                 : (int64_t)(next(&random) % 5);
        int32_t iteration = kind == 1 ? INT32_MAX : (int32_t)(next(&random) % 3);

        snprintf(name, sizeof name, "p%d", (int)(next(&random) % (kind == 2 ? 500 : 4)));
        trace_add(t, iteration, step, name, digest_of(next(&random) % 50),
                  digest_of(next(&random) % 1000));
    }
    t->dropped = seed % 3 ? 0 : (int64_t)seed;
}

static void check_same(const struct trace *a, const struct trace *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->dropped, b->dropped);
    assert_int_equal(a->place_count, b->place_count);
    for (int i = 0; i < a->place_count; i++) {
        assert_string_equal(a->places[i], b->places[i]);
        assert_int_equal(trace_find_place(b, a->places[i]), i);
    }
    assert_true(a->count == 0 || memcmp(a->records, b->records,
                                        (size_t)a->count * sizeof *a->records) == 0);
}

/* Packs, unpacks, compares; returns the length. */
static size_t check_round_trip(const struct trace *t)
{
    struct buf buf = BUF_INIT;
    struct trace back;
    struct err err;
    size_t length;

    trace_pack(t, &buf);
    length = buf.length;
    assert_int_equal(trace_unpack(buf.data, length, &back, &err), ERR_OK);
    check_same(t, &back);
    assert_true(back.count == 0 || trace_add(&back, 0, 0, "new", digest_of(1),
                                             digest_of(2)) == (back.dropped == 0));
    trace_release(&back);
    buf_release(&buf);
    return length;
}

static void test_round_trips(void **state)
{
    struct trace t;

    (void)state;
    trace_init(&t);
    check_round_trip(&t);
    for (uint64_t seed = 0; seed < 30; seed++) {
        make_wild(&t, seed, (int)(seed * seed));
        check_round_trip(&t);
        trace_release(&t);
    }
    make_regular(&t, 1, 60);
    check_round_trip(&t);
    trace_release(&t);
}

static void test_a_full_trace_comes_back(void **state)
{
    struct trace t;

    (void)state;
    make_regular(&t, TRACE_RECORDS_MAX / 64 + 5, 64);
    assert_int_equal(t.count, TRACE_RECORDS_MAX);
    assert_int_equal(t.dropped, 5 * 64);
    check_round_trip(&t);
    trace_release(&t);
}

/* Beside one new digest a record, almost nothing. */
static void test_a_regular_trace_is_small(void **state)
{
    struct trace t;
    size_t length;

    (void)state;
    make_regular(&t, 1000, 60);
    length = check_round_trip(&t);
    print_message("1000 steps of 60 places: %zu bytes, %zu without the digests\n", length,
                  length - 60000 * 16);
    assert_true(length < 60000 * 16 + 2000);
    trace_release(&t);
    make_regular(&t, 1000, 60);
    for (int64_t i = 0; i < t.count; i++) {
        t.records[i].out = t.records[i].in = digest_of((uint64_t)i % 60);
    }
    assert_true(check_round_trip(&t) < 4000); /* nothing new after the first step */
    trace_release(&t);
}

/* Digests of other programs may be anything: packing them takes no longer. */
static void test_digests_that_look_alike(void **state)
{
    struct trace t;

    (void)state;
    trace_init(&t);
    for (uint64_t i = 1; i < TRACE_RECORDS_MAX / 4; i++) {
        /* halves that cancel, and halves that are equal */
        trace_add(&t, 0, (int64_t)i, "p", (struct digest){ i, i ^ 7 },
                  (struct digest){ i << 32, i << 32 });
    }
    check_round_trip(&t);
    /* the same value in what hash_of of trace_pack.c keeps: slower only if it is searched
     */
    for (int64_t i = 0; i < t.count; i++) {
        uint64_t hi = (uint64_t)i;

        t.records[i].in = (struct digest){ hi, 0 - hi * 0x9e3779b97f4a7c15u };
        t.records[i].out = t.records[i].in;
    }
    check_round_trip(&t);
    trace_release(&t);
}

static void test_equal_traces_are_equal_bytes(void **state)
{
    struct buf bufs[2] = { BUF_INIT, BUF_INIT };
    struct trace t;
    struct digest digests[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        make_wild(&t, 9, 500);
        trace_pack(&t, &bufs[i]);
        digests[i] = trace_packed_digest(bufs[i].data, bufs[i].length);
        trace_release(&t);
    }
    assert_int_equal(bufs[0].length, bufs[1].length);
    assert_memory_equal(bufs[0].data, bufs[1].data, bufs[0].length);
    assert_true(digest_equal(digests[0], digests[1]));
    make_wild(&t, 9, 500);
    t.records[250].out.lo ^= 1;
    buf_release(&bufs[1]);
    trace_pack(&t, &bufs[1]);
    digests[1] = trace_packed_digest(bufs[1].data, bufs[1].length);
    assert_false(digest_equal(digests[0], digests[1]));
    trace_release(&t);
    buf_release(&bufs[0]);
    buf_release(&bufs[1]);
}

static bool is_taken(const void *bytes, size_t length)
{
    struct trace t;
    struct err err = { .code = ERR_OK };
    bool taken = trace_unpack(bytes, length, &t, &err) == ERR_OK;

    assert_true(taken || (err.code == ERR_CORRUPT && t.count == 0 && !t.records));
    trace_release(&t);
    return taken;
}

static void test_damage_is_refused(void **state)
{
    struct buf buf = BUF_INIT;
    struct trace t;

    (void)state;
    make_wild(&t, 4, 40);
    trace_pack(&t, &buf);
    trace_release(&t);
    for (size_t length = 0; length < buf.length; length++) {
        char *copy = malloc(length + 1); /* so that reading beyond it is seen */

        memcpy(copy, buf.data, length);
        assert_false(is_taken(copy, length));
        free(copy);
    }
    for (size_t i = 0; i < buf.length; i++) {
        for (int bit = 0; bit < 8; bit++) {
            buf.data[i] = (char)(buf.data[i] ^ 1 << bit);
            assert_false(is_taken(buf.data, buf.length));
            buf.data[i] = (char)(buf.data[i] ^ 1 << bit);
        }
    }
    assert_true(is_taken(buf.data, buf.length));
    buf_putc(&buf, 0);
    assert_false(is_taken(buf.data, buf.length));
    buf_release(&buf);
}

static void put(struct buf *buf, uint64_t word, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        buf_putc(buf, (char)(word >> 8 * i));
    }
}

/* Packs COLUMNS and DIGESTS new digests as trace_pack would, whatever they are. */
static void seal(const void *columns, size_t length, int digests, struct buf *buf)
{
    uLongf compressed = compressBound(length);
    void *bytes = malloc(compressed);
    struct digest end;

    compress2(bytes, &compressed, columns, length, 1);
    buf_release(buf);
    buf_add(buf, "rptrace1", 8);
    put(buf, length, 4);
    put(buf, compressed, 4);
    put(buf, (uint64_t)digests, 4);
    buf_add(buf, bytes, compressed);
    for (int i = 0; i < digests; i++) {
        put(buf, digest_of((uint64_t)i).hi, 8);
        put(buf, digest_of((uint64_t)i).lo, 8);
    }
    end = digest_bytes(buf->data, buf->length);
    put(buf, end.hi, 8);
    put(buf, end.lo, 8);
    free(bytes);
}

static void test_hostile_columns_are_refused(void **state)
{
    static const struct {
        const char *why, *columns;
        size_t length;
        int digests;
        bool taken;
    } cases[] = {
#define CASE(why, columns, digests, taken)                                               \
    { why, columns, sizeof columns - 1, digests, taken }
        CASE("a record", "\1\0\1\1a\1\0\0", 2, true),
        CASE("the same digest twice", "\1\0\1\1a\1\0\1", 1, true),
        CASE("a digest too many", "\1\0\1\1a\1\0\0", 3, false),
        CASE("a digest too few", "\1\0\1\1a\1\0\0", 1, false),
        CASE("a byte too many", "\1\0\1\1a\1\0\0\0", 2, false),
        CASE("before the first digest", "\1\0\1\1a\1\1\0", 1, false),
        CASE("too far back", "\1\0\1\1a\1\0\2", 1, false),
        CASE("no such place", "\1\0\1\1a\0\1\0\0\0\0", 2, false),
        CASE("no places", "\1\0\0\1\0\0", 2, false),
        CASE("a negative step", "\1\0\1\1a\0\0\1\0\0\0", 2, false),
        CASE("a negative iteration", "\1\0\1\1a\0\0\0\1\0\0", 2, false),
        CASE("more right than records", "\1\0\1\1a\2\0\0", 2, false),
        CASE("a name twice", "\1\0\2\1a\1a\1\0\0", 2, false),
        CASE("a name of nothing", "\1\0\1\0\1\0\0", 2, false),
        CASE("a name with a NUL", "\1\0\1\2a\0\1\0\0", 2, false),
        CASE("a name that is not text", "\1\0\1\1\xff\1\0\0", 2, false),
        CASE("a name that goes on behind the end", "\1\0\1\3a", 0, false),
        CASE("two digests too few", "\2\0\1\1a\2\0\0\0\0", 1, false),
        CASE("a name that is too long", "\1\0\1\x81\1\1\0\0", 2, false),
        CASE("too many records", "\x81\x80\x10\0\1\1a\1\0\0", 2, false),
        CASE("too many places", "\1\0\x81\x80\1\1a\1\0\0", 2, false),
        CASE("a number without end", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 0,
             false),
        CASE("nothing", "", 0, false),
#undef CASE
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buf buf = BUF_INIT;

        seal(cases[i].columns, cases[i].length, cases[i].digests, &buf);
        if (is_taken(buf.data, buf.length) != cases[i].taken) {
            fail_msg("%s", cases[i].why);
        }
        buf_release(&buf);
    }
}

/* What the header says is not what follows it: whoever sealed it, none of it is taken. */
static void test_headers_that_lie(void **state)
{
    static const char columns[] = "\1\0\1\1a\1\0\0";
    static const struct {
        int at; /* of the word: columns, compressed bytes, digests */
        uint32_t more;
        bool is_longer; /* by a byte behind the compressed ones */
    } lies[] = {
        { 8, 1, false },  { 8, UINT32_MAX, false },  { 8, 17 << 20, false },
        { 12, 1, false }, { 12, UINT32_MAX, false }, { 16, 1, false },
        { 12, 1, true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct buf buf = BUF_INIT, sealed = BUF_INIT;
        struct digest end;
        uint32_t word;

        seal(columns, sizeof columns - 1, 2, &sealed);
        assert_true(is_taken(sealed.data, sealed.length));
        memcpy(&word, sealed.data + lies[i].at, sizeof word);
        word += lies[i].more;
        memcpy(sealed.data + lies[i].at, &word, sizeof word);
        buf_add(&buf, sealed.data, sealed.length - 3 * 16);
        if (lies[i].is_longer) {
            buf_putc(&buf, 'x');
        }
        buf_add(&buf, sealed.data + sealed.length - 3 * 16, 2 * 16);
        end = digest_bytes(buf.data, buf.length);
        put(&buf, end.hi, 8);
        put(&buf, end.lo, 8);
        if (is_taken(buf.data, buf.length)) {
            fail_msg("lie %zu is taken", i);
        }
        buf_release(&buf);
        buf_release(&sealed);
    }
}

/* Compressed bytes that are none. */
static void test_what_is_not_compressed(void **state)
{
    struct buf buf = BUF_INIT;
    struct digest end;

    (void)state;
    buf_add(&buf, "rptrace1", 8);
    put(&buf, 8, 4);
    put(&buf, 4, 4);
    put(&buf, 0, 4);
    buf_add(&buf, "none", 4);
    end = digest_bytes(buf.data, buf.length);
    put(&buf, end.hi, 8);
    put(&buf, end.lo, 8);
    assert_false(is_taken(buf.data, buf.length));
    assert_true(digest_equal(trace_packed_digest(buf.data, buf.length), end));
    assert_true(digest_equal(trace_packed_digest(buf.data, 15), (struct digest){ 0, 0 }));
    buf_release(&buf);
}

/* Steps that are predicted beyond what a step can be. */
static void test_predictions_stay_in_bounds(void **state)
{
    /* a, b, a, and then, as guessed, b: from a to b the step rises by 2^62, or by 2^61 */
    static const char high[] =
        "\4\0\2\1a\1b\1\1\x80\x80\x80\x80\x80\x80\x80\x80\x80\1\0"
        "\0\0\0\0\1\0\0\0\0\0\0\0\0";
    static const char low[] =
        "\4\0\2\1a\1b\1\1\x80\x80\x80\x80\x80\x80\x80\x80\x40\0"
        "\0\0\0\0\1\0\0\0\0\0\0\0\0";
    struct buf buf = BUF_INIT;

    (void)state;
    seal(low, sizeof low - 1, 8, &buf);
    assert_true(is_taken(buf.data, buf.length));
    seal(low, sizeof low - 1, 3, &buf); /* so few that it goes on without them */
    assert_false(is_taken(buf.data, buf.length));
    seal(high, sizeof high - 1, 8, &buf);
    assert_false(is_taken(buf.data, buf.length));
    buf_release(&buf);
}

/* Whatever is in the columns: refused, or a trace that can be used. */
static void test_mutations(void **state)
{
    struct buf packed = BUF_INIT;
    struct buf buf = BUF_INIT;
    struct trace t;
    unsigned char columns[4096];
    uLongf length = sizeof columns;
    uint64_t random = 1;
    int taken = 0;
    int digests;

    (void)state;
    make_wild(&t, 7, 60);
    trace_pack(&t, &packed);
    digests = (unsigned char)packed.data[16]; /* less than 256 of them */
    trace_release(&t);
    assert_int_equal(uncompress(columns, &length, (unsigned char *)packed.data + 20,
                                packed.length - 20),
                     Z_OK);
    for (int i = 0; i < 4000; i++) {
        unsigned char copy[sizeof columns];
        struct err err;

        memcpy(copy, columns, length);
        for (uint64_t n = 1 + next(&random) % 3; n > 0; n--) {
            copy[next(&random) % length] = (unsigned char)next(&random);
        }
        seal(copy, length, digests + (int)(next(&random) % 2), &buf);
        if (trace_unpack(buf.data, buf.length, &t, &err) == ERR_OK) {
            taken++;
            check_round_trip(&t);
        }
        trace_release(&t);
    }
    print_message("%d of 4000 mutations are traces\n", taken);
    buf_release(&packed);
    buf_release(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_a_full_trace_comes_back),
        cmocka_unit_test(test_a_regular_trace_is_small),
        cmocka_unit_test(test_digests_that_look_alike),
        cmocka_unit_test(test_equal_traces_are_equal_bytes),
        cmocka_unit_test(test_damage_is_refused),
        cmocka_unit_test(test_hostile_columns_are_refused),
        cmocka_unit_test(test_headers_that_lie),
        cmocka_unit_test(test_what_is_not_compressed),
        cmocka_unit_test(test_predictions_stay_in_bounds),
        cmocka_unit_test(test_mutations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
