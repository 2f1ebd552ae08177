#include "daemon/trace/trace_reads.h"

#include <stdlib.h>

#include "daemon/base/mem.h"

void trace_reads_init(struct trace_reads *reads, const struct trace *trace)
{
    *reads = (struct trace_reads){ .trace = trace };
    reads->places = xcalloc((size_t)trace->place_count + 1, sizeof *reads->places);
    for (int i = 0; i < trace->place_count; i++) {
        reads->places[i].role = trace_place_role(trace->places[i]);
    }
}

void trace_reads_release(struct trace_reads *reads)
{
    free(reads->places);
    *reads = (struct trace_reads){ .trace = NULL };
}

/* What RECORD reads in addition to what it says; NULL: nothing. */
static const struct digest *find_more(const struct trace_reads *reads,
                                      const struct trace_reads_place *place,
                                      const struct trace_record *record)
{
    bool says_nothing = trace_reads_nothing(record);

    switch (place->role) { /* never else: each role has a case (-Wswitch) */
    case TRACE_ROLE_DATA:
    case TRACE_ROLE_RNG:
        return says_nothing ? &place->before : NULL;
    case TRACE_ROLE_VARIABLE:
        return says_nothing && place->seen ? &reads->before : NULL;
    case TRACE_ROLE_STATE:
        return says_nothing ? &reads->before : &place->before;
    case TRACE_ROLE_OUTPUT:
        return says_nothing ? &reads->before : &reads->iteration;
    case TRACE_ROLE_OTHER:
        break;
    }
    return says_nothing ? &reads->before : NULL;
}

static void learn(struct digest *before, const struct trace_record *record)
{
    const struct digest parts[] = { *before, record->in, record->out };

    *before = digest_combine(parts, 3);
}

struct digest trace_reads_next(struct trace_reads *reads)
{
    const struct trace_record *record = &reads->trace->records[reads->at];
    struct trace_reads_place *place = &reads->places[record->place];
    const struct digest *more;
    struct digest all = record->in;

    if (reads->at > 0 && record->iteration != record[-1].iteration) {
        reads->iteration = (struct digest){ 0, 0 };
    }
    more = find_more(reads, place, record);
    if (more) {
        const struct digest parts[] = { record->in, *more };

        all = digest_combine(parts, 2);
    }
    learn(&reads->before, record);
    learn(&reads->iteration, record);
    learn(&place->before, record);
    place->seen = true;
    reads->at++;
    return all;
}

struct digest trace_reads_at(const struct trace *trace, int64_t position)
{
    struct trace_reads reads;
    struct digest all;

    trace_reads_init(&reads, trace);
    do {
        all = trace_reads_next(&reads);
    } while (reads.at <= position);
    trace_reads_release(&reads);
    return all;
}
