#include "daemon/trace/trace_pack.h"

#include <stdlib.h>
#include <zlib.h>

#include "daemon/base/mem.h"
#include "daemon/trace/trace_columns.h"

/* Reading that stops at the end and remembers that it did. */
struct reader {
    const unsigned char *at, *end;
    bool bad;
};

static uint64_t take_number(struct reader *r)
{
    uint64_t value = 0;

    for (int shift = 0; shift < 64; shift += 7) {
        uint64_t byte;

        if (r->at == r->end) {
            break;
        }
        byte = *r->at++;
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
    struct trace_guess guess = { .like = -1 };
    struct trace_record *records = trace->records;

    guess.last = xcalloc((size_t)trace->place_count + 1, sizeof *guess.last);
    for (int64_t i = 0, right = -1; i < trace->count; i++) {
        right = right < 0 ? take_count(r, trace->count - i) : right;
        records[i] = right > 0 ? trace_guess_next(&guess, records, i)
                               : take_record(r, trace, i ? &records[i - 1] : NULL);
        r->bad |= records[i].place >= trace->place_count || records[i].step < 0;
        if (r->bad) {
            break;
        }
        right--;
        trace_guess_learn(&guess, records, i);
    }
    free(guess.last);
}

static void take_digests(struct reader *r, struct reader *fresh, struct trace *trace)
{
    for (int64_t n = 0; n < 2 * trace->count && !r->bad && !fresh->bad; n++) {
        int64_t back = take_count(r, n);

        *trace_digest_at(trace->records, n) =
            back ? *trace_digest_at(trace->records, n - back) : take_digest(fresh);
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
    return length >= TRACE_HEADER_BYTES + TRACE_DIGEST_BYTES &&
           memcmp(bytes, TRACE_MAGIC, TRACE_MAGIC_BYTES) == 0 &&
           digest_equal(digest_bytes(bytes, length - TRACE_DIGEST_BYTES),
                        trace_packed_digest(bytes, length));
}

static bool unpack(const unsigned char *bytes, size_t length, struct trace *trace)
{
    struct reader header = { bytes + TRACE_MAGIC_BYTES, bytes + TRACE_HEADER_BYTES,
                             false };
    size_t columns_length = take_word(&header, 4);
    size_t compressed = take_word(&header, 4);
    size_t digests = take_word(&header, 4);
    unsigned char *columns;
    struct reader r, fresh;
    bool good;

    if (columns_length > TRACE_COLUMNS_MAX ||
        TRACE_HEADER_BYTES + compressed + (digests + 1) * TRACE_DIGEST_BYTES != length) {
        return false;
    }
    columns = decompress(header.at, compressed, columns_length);
    if (!columns) {
        return false;
    }
    r = (struct reader){ columns, columns + columns_length, false };
    fresh = (struct reader){ header.at + compressed, bytes + length - TRACE_DIGEST_BYTES,
                             false };
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
    struct reader r = { end - TRACE_DIGEST_BYTES, end, false };

    return length >= TRACE_DIGEST_BYTES ? take_digest(&r) : (struct digest){ 0, 0 };
}
