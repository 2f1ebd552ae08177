#include "daemon/trace/trace_pack.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "daemon/base/mem.h"

enum {
    MAGIC_BYTES = 8,
    HEADER_BYTES = MAGIC_BYTES + 3 * 4,
    DIGEST_BYTES = 16,
    /* Generous: names, and per record a place, two differences and two distances. */
    COLUMNS_MAX = 16 << 20
};

/* Guesses the iteration, step and place of each record from those before it. */
struct guess {
    int64_t *last; /* by place: where it was met last, plus one */
    int64_t like;  /* the record is expected to follow as the one after this did; -1 */
    int32_t fresh; /* places met so far: they are numbered as they come */
};

static struct trace_record guess_next(const struct guess *guess,
                                      const struct trace_record *records,
                                      int64_t position)
{
    struct trace_record next = { .place = guess->fresh };
    const struct trace_record *before;

    if (position == 0) {
        return next;
    }
    before = &records[position - 1];
    next.iteration = before->iteration;
    next.step = before->step;
    if (guess->like >= 0) {
        const struct trace_record *like = &records[guess->like];
        int64_t iteration =
            (int64_t)before->iteration + like[1].iteration - like[0].iteration;

        next.place = like[1].place;
        next.iteration = iteration < 0 || iteration > INT32_MAX ? 0 : (int32_t)iteration;
        next.step = (int64_t)((uint64_t)before->step + (uint64_t)like[1].step -
                              (uint64_t)like[0].step);
    }
    return next;
}

static void guess_learn(struct guess *guess, const struct trace_record *records,
                        int64_t position)
{
    int32_t place = records[position].place;

    guess->like = guess->last[place] - 1;
    guess->last[place] = position + 1;
    guess->fresh += place == guess->fresh;
}

static bool guess_is_right(const struct trace_record *guess,
                           const struct trace_record *record)
{
    return guess->iteration == record->iteration && guess->step == record->step &&
           guess->place == record->place;
}

/* The Nth digest of a trace: in, out of the first record, in, out of the second, … */
static struct digest *digest_at(struct trace_record *records, int64_t n)
{
    return n % 2 ? &records[n / 2].out : &records[n / 2].in;
}

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
    struct guess guess = { .like = -1 };
    const struct trace_record *records = trace->records;
    uint64_t right = 0;

    guess.last = xcalloc((size_t)trace->place_count + 1, sizeof *guess.last);
    for (int64_t i = 0; i < trace->count; i++) {
        struct trace_record next = guess_next(&guess, records, i);

        if (guess_is_right(&next, &records[i])) {
            right++;
        } else {
            put_number(buf, right);
            put_number(buf, (uint64_t)records[i].place);
            put_difference(buf, records[i].step, i ? records[i - 1].step : 0);
            put_difference(buf, records[i].iteration, i ? records[i - 1].iteration : 0);
            right = 0;
        }
        guess_learn(&guess, records, i);
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
    struct digest digest = *digest_at(records, n);
    uint32_t first = hash_of(digest) & memory->mask;

    for (uint32_t i = 0; i < PROBES_MAX; i++) {
        int32_t *slot = &memory->slots[(first + i) & memory->mask];

        *ret_found = *slot && digest_equal(*digest_at(records, *slot - 1), digest);
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
            put_digest(fresh, *digest_at(trace->records, n));
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

    /* never true: there is room for the worst case, and xmalloc's for what it needs */
    if (compress2(compressed, &length, (const Bytef *)columns->data, columns->length,
                  Z_DEFAULT_COMPRESSION) != Z_OK) {
        abort(); /* out of memory: there is nothing else that it can say */
    }
    put_word(buf, columns->length, 4);
    put_word(buf, length, 4);
    put_word(buf, fresh->length / DIGEST_BYTES, 4);
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
    buf_add(buf, TRACE_MAGIC, MAGIC_BYTES);
    put_compressed(buf, &columns, &fresh);
    if (fresh.length) {
        buf_add(buf, fresh.data, fresh.length);
    }
    put_digest(buf, digest_bytes(buf->data + start, buf->length - start));
    buf_release(&columns);
    buf_release(&fresh);
}

/* Reading that stops at the end and remembers that it did. */
struct reader {
    const unsigned char *at, *end;
    bool bad;
};

static uint64_t take_number(struct reader *r)
{
    uint64_t value = 0;

    for (int shift = 0; r->at < r->end; shift += 7) {
        uint64_t byte = *r->at++;

        if (shift == 63 && byte > 1) {
            break;
        }
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            return value;
        }
    }
    r->bad = true;
    return 0;
}

/* At most MAX. */
static int64_t take_count(struct reader *r, int64_t max)
{
    uint64_t value = take_number(r);

    if (value > (uint64_t)max) {
        r->bad = true;
        return 0;
    }
    return (int64_t)value;
}

/* FROM and a difference; from 0 to MAX. */
static int64_t take_difference(struct reader *r, int64_t from, int64_t max)
{
    uint64_t folded = take_number(r);
    uint64_t to = (uint64_t)from + (folded >> 1 ^ (folded & 1 ? UINT64_MAX : 0));

    if (to > (uint64_t)max) {
        r->bad = true;
        return 0;
    }
    return (int64_t)to;
}

static uint64_t take_word(struct reader *r, int bytes)
{
    uint64_t word = 0;

    if (r->end - r->at < bytes) {
        r->bad = true;
        return 0;
    }
    for (int i = 0; i < bytes; i++) {
        word |= (uint64_t)*r->at++ << 8 * i;
    }
    return word;
}

static struct digest take_digest(struct reader *r)
{
    uint64_t hi = take_word(r, 8);

    return (struct digest){ hi, take_word(r, 8) };
}

/* Names are distinct. */
static void take_places(struct reader *r, struct trace *trace)
{
    int64_t count = take_count(r, TRACE_PLACES_MAX);

    for (int i = 0; i < count && !r->bad; i++) {
        int64_t length = take_count(r, TRACE_PLACE_MAX);
        char name[TRACE_PLACE_MAX + 1] = "";

        if (r->bad || r->end - r->at < length) {
            r->bad = true;
            return;
        }
        memcpy(name, r->at, (size_t)length);
        r->at += length;
        r->bad = strlen(name) != (size_t)length || !trace_place_valid(name) ||
                 trace_add_place(trace, name) != i;
    }
}

/* A record that was guessed wrongly. */
static struct trace_record take_record(struct reader *r, const struct trace *trace,
                                       const struct trace_record *before)
{
    struct trace_record record = { .place = (int32_t)take_count(r, TRACE_PLACES_MAX) };

    record.step = take_difference(r, before ? before->step : 0, INT64_MAX);
    record.iteration =
        (int32_t)take_difference(r, before ? before->iteration : 0, INT32_MAX);
    r->bad |= record.place >= trace->place_count;
    return record;
}

static void take_structure(struct reader *r, struct trace *trace)
{
    struct guess guess = { .like = -1 };
    struct trace_record *records = trace->records;

    guess.last = xcalloc((size_t)trace->place_count + 1, sizeof *guess.last);
    for (int64_t i = 0, right = -1; i < trace->count; i++) {
        right = right < 0 ? take_count(r, trace->count - i) : right;
        records[i] = right > 0 ? guess_next(&guess, records, i)
                               : take_record(r, trace, i ? &records[i - 1] : NULL);
        r->bad |= records[i].place >= trace->place_count || records[i].step < 0;
        if (r->bad) {
            break;
        }
        right--;
        guess_learn(&guess, records, i);
    }
    free(guess.last);
}

static void take_digests(struct reader *r, struct reader *fresh, struct trace *trace)
{
    for (int64_t n = 0; n < 2 * trace->count && !r->bad && !fresh->bad; n++) {
        int64_t back = take_count(r, n);

        *digest_at(trace->records, n) =
            back ? *digest_at(trace->records, n - back) : take_digest(fresh);
    }
}

/* The columns, decompressed; NULL if they are not LENGTH bytes. */
static unsigned char *decompress(const unsigned char *from, size_t compressed,
                                 size_t length)
{
    unsigned char *columns = xmalloc(length + 1);
    uLongf got = length;
    uLong used = compressed;

    if (uncompress2(columns, &got, from, &used) != Z_OK || got != length ||
        used != compressed) {
        free(columns);
        return NULL;
    }
    return columns;
}

static bool take_columns(struct reader *r, struct reader *fresh, struct trace *trace)
{
    trace->count = take_count(r, TRACE_RECORDS_MAX);
    trace->dropped = take_count(r, INT64_MAX);
    take_places(r, trace);
    if (!r->bad) {
        trace->records = xcalloc((size_t)trace->count + 1, sizeof *trace->records);
        trace->capacity = trace->count;
        take_structure(r, trace);
        take_digests(r, fresh, trace);
    }
    return !r->bad && !fresh->bad && r->at == r->end && fresh->at == fresh->end;
}

/* Whether all of it is there and as it was written. */
static bool is_whole(const unsigned char *bytes, size_t length)
{
    return length >= HEADER_BYTES + DIGEST_BYTES &&
           memcmp(bytes, TRACE_MAGIC, MAGIC_BYTES) == 0 &&
           digest_equal(digest_bytes(bytes, length - DIGEST_BYTES),
                        trace_packed_digest(bytes, length));
}

static bool unpack(const unsigned char *bytes, size_t length, struct trace *trace)
{
    struct reader header = { bytes + MAGIC_BYTES, bytes + HEADER_BYTES, false };
    size_t columns_length = take_word(&header, 4);
    size_t compressed = take_word(&header, 4);
    size_t digests = take_word(&header, 4);
    unsigned char *columns;
    struct reader r, fresh;
    bool good;

    if (columns_length > COLUMNS_MAX ||
        HEADER_BYTES + compressed + (digests + 1) * DIGEST_BYTES != length) {
        return false;
    }
    columns = decompress(header.at, compressed, columns_length);
    if (!columns) {
        return false;
    }
    r = (struct reader){ columns, columns + columns_length, false };
    fresh =
        (struct reader){ header.at + compressed, bytes + length - DIGEST_BYTES, false };
    good = take_columns(&r, &fresh, trace);
    free(columns);
    return good;
}

enum err_code trace_unpack(const void *bytes, size_t length, struct trace *ret_trace,
                           struct err *err)
{
    trace_init(ret_trace);
    if (is_whole(bytes, length) && unpack(bytes, length, ret_trace)) {
        return ERR_OK;
    }
    trace_release(ret_trace);
    return err_set(err, ERR_CORRUPT, "a stored trace is damaged");
}

struct digest trace_packed_digest(const void *bytes, size_t length)
{
    const unsigned char *end = (const unsigned char *)bytes + length;
    struct reader r = { end - DIGEST_BYTES, end, false };

    return length >= DIGEST_BYTES ? take_digest(&r) : (struct digest){ 0, 0 };
}
