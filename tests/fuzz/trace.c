/* Packed traces, as they are stored.  The bytes are first taken as they are: nearly
 * always they have a wrong digest, and are refused.  Then they are taken as columns
 * (behind the first byte, which says how many 16-byte digests stand at the end), and
 * packed around with right lengths and a right digest. */
#include <string.h>
#include <zlib.h>

#include "daemon/trace/comparison.h"
#include "daemon/trace/divergence.h"
#include "daemon/trace/trace_pack.h"
#include "tests/fuzz/fuzz.h"

static void add_word(struct buf *buf, uint64_t word, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        buf_putc(buf, (char)(word >> 8 * i));
    }
}

static void add_columns(struct buf *packed, const uint8_t *data, size_t size)
{
    size_t digests = size ? data[0] : 0;
    size_t columns = size ? size - 1 : 0;
    unsigned char compressed[4096];
    uLongf length = sizeof compressed;
    struct digest digest;

    digests = digests * 16 <= columns ? digests : 0;
    columns -= digests * 16;
    if (compress(compressed, &length, size ? data + 1 : data, columns) != Z_OK) {
        return;
    }
    buf_puts(packed, TRACE_MAGIC);
    add_word(packed, columns, 4);
    add_word(packed, length, 4);
    add_word(packed, digests, 4);
    buf_add(packed, compressed, length);
    if (digests) {
        buf_add(packed, data + 1 + columns, digests * 16);
    }
    digest = digest_bytes(packed->data, packed->length);
    add_word(packed, digest.hi, 8);
    add_word(packed, digest.lo, 8);
}

/* No place differs from itself, by either way of comparing. */
static void check_same(const struct trace *a, const struct trace *b)
{
    struct divergence *divergence = divergence_new();
    struct divergence_result result;
    struct trace_comparison comparison;

    trace_compare(a, b, &comparison);
    FUZZ_CHECK(comparison.first == -1 && comparison.structure == TRACE_DIVERGES_NOWHERE);
    FUZZ_CHECK(comparison.same == a->count);
    trace_comparison_release(&comparison);
    divergence_add(divergence, a);
    divergence_add(divergence, b);
    divergence_result(divergence, &result);
    FUZZ_CHECK(result.first.position == -1 && result.root.position == -1);
    divergence_free(divergence);
}

/* Both ways of comparing find the same first difference, where one output is another. */
static void check_changed(const struct trace *a, struct trace *b, uint8_t where)
{
    struct trace_comparison comparison;
    int64_t position = where % b->count;

    b->records[position].out.lo ^= 1;
    trace_compare(a, b, &comparison);
    FUZZ_CHECK(comparison.first == position);
    FUZZ_CHECK(comparison.same == a->count - 1);
    trace_comparison_release(&comparison);
}

static void check_round_trip(const struct trace *trace, uint8_t where)
{
    struct buf packed = BUF_INIT;
    struct trace again;
    struct err err;

    trace_pack(trace, &packed);
    FUZZ_CHECK(trace_unpack(packed.data, packed.length, &again, &err) == ERR_OK);
    FUZZ_CHECK(again.dropped == trace->dropped);
    check_same(trace, &again);
    if (again.count) {
        check_changed(trace, &again, where);
    }
    trace_release(&again);
    packed.data[where % packed.length] ^= (char)(1 << where % 8);
    FUZZ_CHECK(trace_unpack(packed.data, packed.length, &again, &err) == ERR_CORRUPT);
    buf_release(&packed);
}

static void unpack(const void *bytes, size_t length, uint8_t where)
{
    struct trace trace;
    struct err err;

    if (trace_unpack(bytes, length, &trace, &err) == ERR_OK) {
        check_round_trip(&trace, where);
        trace_release(&trace);
    }
}

static void run(const uint8_t *data, size_t size)
{
    struct buf packed = BUF_INIT;
    uint8_t where = size ? data[size - 1] : 0;

    unpack(data, size, where);
    add_columns(&packed, data, size);
    unpack(packed.data, packed.length, where);
    buf_release(&packed);
}

FUZZ_TARGET("trace", run);
