#include "daemon/trace/trace_pack.h"

#include <stdlib.h>
#include <zlib.h>

#include "daemon/base/mem.h"
#include "daemon/trace/trace_columns.h"

static void put_number(struct buf *buf, uint64_t value)
{
    while (value > 0x7f) {
        buf_putc(buf, (char)(value | 0x80));
        value >>= 7;
    }
    buf_putc(buf, (char)value);
}

/* Small whatever the sign. */
static void put_difference(struct buf *buf, int64_t to, int64_t from)
{
    uint64_t difference = (uint64_t)to - (uint64_t)from;

    put_number(buf, difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0));
}

static void put_word(struct buf *buf, uint64_t word, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        buf_putc(buf, (char)(word >> 8 * i));
    }
}

static void put_digest(struct buf *buf, struct digest digest)
{
    put_word(buf, digest.hi, 8);
    put_word(buf, digest.lo, 8);
}

static void put_places(struct buf *buf, const struct trace *trace)
{
    put_number(buf, (uint64_t)trace->place_count);
    for (int i = 0; i < trace->place_count; i++) {
        size_t length = strlen(trace->places[i]);

        put_number(buf, length);
        buf_add(buf, trace->places[i], length);
    }
}

/* How many guesses are right, then a record that was guessed wrongly, and so on. */
static void put_structure(struct buf *buf, const struct trace *trace)
{
    struct trace_guess guess = { .like = -1 };
    const struct trace_record *records = trace->records;
    uint64_t right = 0;

    guess.last = xcalloc((size_t)trace->place_count + 1, sizeof *guess.last);
    for (int64_t i = 0; i < trace->count; i++) {
        struct trace_record next = trace_guess_next(&guess, records, i);

        if (trace_guess_right(&next, &records[i])) {
            right++;
        } else {
            put_number(buf, right);
            put_number(buf, (uint64_t)records[i].place);
            put_difference(buf, records[i].step, i ? records[i - 1].step : 0);
            put_difference(buf, records[i].iteration, i ? records[i - 1].iteration : 0);
            right = 0;
        }
        trace_guess_learn(&guess, records, i);
    }
    if (right) {
        put_number(buf, right);
    }
    free(guess.last);
}

enum { PROBES_MAX = 64 };

/* Where each digest was met last. */
struct memory {
    const struct trace *trace;
    int32_t *slots; /* hash table: which digest of the trace, plus one; 0 is empty */
    uint32_t mask;
};

static void memory_init(struct memory *memory, const struct trace *trace)
{
    uint32_t slots = 64;

    while (slots < 4 * (uint64_t)trace->count) {
        slots *= 2;
    }
    memory->trace = trace;
    memory->slots = xcalloc(slots, sizeof *memory->slots);
    memory->mask = slots - 1;
}

static uint32_t hash_of(struct digest digest)
{
    uint64_t x = digest.hi * 0x9e3779b97f4a7c15u + digest.lo;

    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)(x >> 32);
}

/* The slot that holds a digest equal to the Nth, or one where it may be put: an empty
 * one, or, where too many stand together, that of a digest which is forgotten.  So the
 * time is bounded, whatever the digests are. */
static int32_t *memory_slot(const struct memory *memory, int64_t n, bool *ret_found)
{
    struct trace_record *records = memory->trace->records;
    struct digest digest = *trace_digest_at(records, n);
    uint32_t first = hash_of(digest) & memory->mask;

    for (uint32_t i = 0; i < PROBES_MAX; i++) {
        int32_t *slot = &memory->slots[(first + i) & memory->mask];

        *ret_found = *slot && digest_equal(*trace_digest_at(records, *slot - 1), digest);
        if (*ret_found || !*slot) {
            return slot;
        }
    }
    return &memory->slots[first];
}

/* To `distances`, for each digest, how far back it stands, or 0 and the digest to
 * `fresh`. */
static void put_digests(struct buf *distances, struct buf *fresh,
                        const struct trace *trace)
{
    struct memory memory;

    memory_init(&memory, trace);
    for (int64_t n = 0; n < 2 * trace->count; n++) {
        bool found = false;
        int32_t *slot = memory_slot(&memory, n, &found);

        put_number(distances, found ? (uint64_t)(n + 1 - *slot) : 0);
        if (!found) {
            put_digest(fresh, *trace_digest_at(trace->records, n));
        }
        *slot = (int32_t)(n + 1);
    }
    free(memory.slots);
}

static void put_compressed(struct buf *buf, const struct buf *columns,
                           const struct buf *fresh)
{
    uLongf length = compressBound(columns->length);
    void *compressed = xmalloc(length);

    if (compress2(compressed, &length, (const Bytef *)columns->data, columns->length,
                  Z_DEFAULT_COMPRESSION) != Z_OK) {
        abort(); /* out of memory: there is nothing else that it can say */
    }
    put_word(buf, columns->length, 4);
    put_word(buf, length, 4);
    put_word(buf, fresh->length / TRACE_DIGEST_BYTES, 4);
    buf_add(buf, compressed, length);
    free(compressed);
}

void trace_pack(const struct trace *trace, struct buf *buf)
{
    size_t start = buf->length;
    struct buf columns = BUF_INIT;
    struct buf fresh = BUF_INIT;

    put_number(&columns, (uint64_t)trace->count);
    put_number(&columns, (uint64_t)trace->dropped);
    put_places(&columns, trace);
    put_structure(&columns, trace);
    put_digests(&columns, &fresh, trace);
    buf_add(buf, TRACE_MAGIC, TRACE_MAGIC_BYTES);
    put_compressed(buf, &columns, &fresh);
    if (fresh.length) {
        buf_add(buf, fresh.data, fresh.length);
    }
    put_digest(buf, digest_bytes(buf->data + start, buf->length - start));
    buf_release(&columns);
    buf_release(&fresh);
}
