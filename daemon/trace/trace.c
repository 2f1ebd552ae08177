#include "daemon/trace/trace.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/hash.h"
#include "daemon/base/mem.h"

void trace_init(struct trace *trace)
{
    *trace = (struct trace){ .count = 0 };
}

void trace_release(struct trace *trace)
{
    for (int i = 0; i < trace->place_count; i++) {
        free(trace->places[i]);
    }
    free(trace->places);
    free(trace->records);
    free(trace->slots);
    trace_init(trace);
}

/* The slot that holds PLACE, or the empty one where it belongs. */
static int32_t *slot_of(const struct trace *trace, const char *place)
{
    uint32_t mask = (uint32_t)trace->slot_count - 1;
    uint32_t i = (uint32_t)hash_bytes(place, strlen(place)) & mask;

    while (trace->slots[i] && strcmp(trace->places[trace->slots[i] - 1], place) != 0) {
        i = (i + 1) & mask;
    }
    return &trace->slots[i];
}

static void grow_slots(struct trace *trace)
{
    trace->slot_count = trace->slot_count ? trace->slot_count * 2 : 64;
    free(trace->slots);
    trace->slots = xcalloc((size_t)trace->slot_count, sizeof *trace->slots);
    for (int i = 0; i < trace->place_count; i++) {
        *slot_of(trace, trace->places[i]) = i + 1;
    }
}

int trace_find_place(const struct trace *trace, const char *place)
{
    return trace->slot_count ? *slot_of(trace, place) - 1 : -1;
}

int trace_add_place(struct trace *trace, const char *place)
{
    int found = trace_find_place(trace, place);

    if (found >= 0 || trace->place_count == TRACE_PLACES_MAX) {
        return found;
    }
    if (2 * (trace->place_count + 1) > trace->slot_count) {
        grow_slots(trace);
    }
    trace->places = xgrow(trace->places, trace->place_count, sizeof *trace->places);
    trace->places[trace->place_count] = xstrdup(place);
    *slot_of(trace, place) = trace->place_count + 1;
    return trace->place_count++;
}

bool trace_add(struct trace *trace, int32_t iteration, int64_t step, const char *place,
               struct digest in, struct digest out)
{
    bool full = trace->dropped > 0 || trace->count == TRACE_RECORDS_MAX;
    int index = full ? -1 : trace_add_place(trace, place);

    if (index < 0) {
        trace->dropped++;
        return false;
    }
    if (trace->count == trace->capacity) {
        trace->capacity = trace->capacity ? trace->capacity * 2 : 256;
        trace->records =
            xrealloc(trace->records, (size_t)trace->capacity * sizeof *trace->records);
    }
    trace->records[trace->count++] = (struct trace_record){
        .iteration = iteration, .place = index, .step = step, .in = in, .out = out
    };
    return true;
}

const char *trace_place_at(const struct trace *trace, int64_t position)
{
    return trace->places[trace->records[position].place];
}

int64_t trace_occurrence(const struct trace *trace, int64_t position)
{
    const struct trace_record *record = &trace->records[position];
    int64_t earlier = 0;

    for (const struct trace_record *r = trace->records; r < record; r++) {
        earlier += r->iteration == record->iteration && r->step == record->step &&
                   r->place == record->place;
    }
    return earlier;
}

bool trace_reads_nothing(const struct trace_record *record)
{
    return record->in.hi == 0 && record->in.lo == 0;
}

/* The next code point of AT, which is not at its end, and how many bytes it takes; 0
 * where it is not UTF-8 as RFC 3629 has it (overlong forms, surrogates). */
static int decode(const char *at, uint32_t *ret_code)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char *bytes = (const unsigned char *)at;
    int length = bytes[0] < 0x80   ? 1
                 : bytes[0] < 0xc2 ? 0
                 : bytes[0] < 0xe0 ? 2
                 : bytes[0] < 0xf0 ? 3
                 : bytes[0] < 0xf5 ? 4
                                   : 0;
    uint32_t code = length > 1 ? bytes[0] & (0x7fu >> length) : bytes[0];

    for (int i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (bytes[i] & 0x3fu);
    }
    if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
        return 0;
    }
    *ret_code = code;
    return length;
}

static bool is_shown(uint32_t code)
{
    return code >= 0x20 && (code < 0x7f || code > 0x9f) &&
           !(code >= 0x2028 && code <= 0x202e) && !(code >= 0x2066 && code <= 0x2069);
}

bool trace_place_valid(const char *place)
{
    size_t length = strnlen(place, TRACE_PLACE_MAX + 1);
    const char *at = place;

    while (*at && at - place <= TRACE_PLACE_MAX) {
        uint32_t code = 0;
        int bytes = decode(at, &code);

        if (bytes == 0 || !is_shown(code)) {
            return false;
        }
        at += bytes;
    }
    return length >= 1 && length <= TRACE_PLACE_MAX;
}

static const char *next_character(const char *at)
{
    at++;
    while (((unsigned char)*at & 0xc0) == 0x80) {
        at++;
    }
    return at;
}

bool trace_place_matches(const char *glob, const char *place)
{
    const char *star = NULL; /* the last '*' seen, and where in PLACE it ends so far */
    const char *after = place;

    while (*place) {
        if (*glob == '*') {
            star = glob++;
            after = place;
        } else if (*glob == '?') {
            glob++;
            place = next_character(place);
        } else if (*glob == *place) {
            glob++;
            place++;
        } else if (star) {
            glob = star + 1;
            after = next_character(after);
            place = after;
        } else {
            return false;
        }
    }
    return glob[strspn(glob, "*")] == '\0';
}

enum trace_role trace_place_role(const char *place)
{
    static const char variable[] = "variable/", before[] = "/before";
    size_t length = strlen(place);

    if (strncmp(place, "data/", 5) == 0) {
        return TRACE_ROLE_DATA;
    }
    if (strncmp(place, "rng/", 4) == 0) {
        return TRACE_ROLE_RNG;
    }
    if (strncmp(place, "optimizer/", 10) == 0) {
        return TRACE_ROLE_STATE;
    }
    if (strncmp(place, "output/", 7) == 0) {
        return TRACE_ROLE_OUTPUT;
    }
    if (length > sizeof variable + sizeof before - 2 &&
        strncmp(place, variable, sizeof variable - 1) == 0 &&
        strcmp(place + length - (sizeof before - 1), before) == 0) {
        return TRACE_ROLE_VARIABLE;
    }
    return TRACE_ROLE_OTHER;
}
