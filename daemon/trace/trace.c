#include "daemon/trace/trace.h"

#include <stdlib.h>
#include <string.h>

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

/* FNV-1a. */
static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261u;

    for (; *text; text++) {
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    }
    return hash;
}

/* The slot that holds PLACE, or the empty one where it belongs. */
static int32_t *slot_of(const struct trace *trace, const char *place)
{
    uint32_t mask = (uint32_t)trace->slot_count - 1;
    uint32_t i = hash_of(place) & mask;

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
    if (trace->place_count == trace->place_capacity) {
        trace->place_capacity = trace->place_capacity ? trace->place_capacity * 2 : 32;
        trace->places = xrealloc(trace->places,
                                 (size_t)trace->place_capacity * sizeof *trace->places);
    }
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
