#include "daemon/trace/outputs.h"

#include <string.h>

static const char *name_of(const struct trace *trace, int64_t at)
{
    return trace->places[trace->records[at].place];
}

/* The first record of an output from AT on; the count: there is none. */
static int64_t find(const struct trace *trace, int64_t at)
{
    while (at < trace->count &&
           trace_place_role(name_of(trace, at)) != TRACE_ROLE_OUTPUT) {
        at++;
    }
    return at;
}

static bool is_of(const struct trace *trace, int64_t at, int32_t iteration)
{
    return at < trace->count && trace->records[at].iteration == iteration;
}

/* Compares the iteration that begins at record I of A with that at J of B, as long as
 * they recorded the same. */
static const char *compare(const struct trace *a, int64_t i, const struct trace *b,
                           int64_t j)
{
    int32_t of_a = a->records[i].iteration, of_b = b->records[j].iteration;

    while (is_of(a, i, of_a) && is_of(b, j, of_b)) {
        const struct trace_record *x = &a->records[i], *y = &b->records[j];

        if (x->step != y->step || strcmp(name_of(a, i), name_of(b, j)) != 0) {
            return NULL;
        }
        if (!digest_equal(x->out, y->out)) {
            return name_of(a, i);
        }
        i = find(a, i + 1);
        j = find(b, j + 1);
    }
    return NULL;
}

const char *trace_outputs_vary(const struct trace *trace)
{
    int64_t first = find(trace, 0);
    const char *differs = NULL;
    int32_t seen;

    if (first == trace->count) {
        return NULL;
    }
    seen = trace->records[first].iteration;
    for (int64_t at = first; at < trace->count && !differs; at = find(trace, at + 1)) {
        if (trace->records[at].iteration != seen) {
            seen = trace->records[at].iteration;
            differs = compare(trace, first, trace, at);
        }
    }
    return differs;
}

const char *trace_outputs_differ(const struct trace *a, const struct trace *b)
{
    int64_t i = find(a, 0), j = find(b, 0);

    return i < a->count && j < b->count ? compare(a, i, b, j) : NULL;
}
