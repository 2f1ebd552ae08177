/* What packing and unpacking a trace share: the layout, and the guess of the next
 * record.  Private to trace_pack.c and trace_unpack.c. */
#ifndef DAEMON_TRACE_TRACE_COLUMNS_H
#define DAEMON_TRACE_TRACE_COLUMNS_H

#include <string.h>

#include "daemon/trace/trace.h"

#define TRACE_MAGIC "rptrace1"

enum {
    TRACE_MAGIC_BYTES = 8,
    TRACE_HEADER_BYTES = TRACE_MAGIC_BYTES + 3 * 4,
    TRACE_DIGEST_BYTES = 16,
    /* Generous: names, and per record a place, two differences and two distances. */
    TRACE_COLUMNS_MAX = 16 << 20
};

/* Guesses the iteration, step and place of each record from those before it. */
struct trace_guess {
    int64_t *last; /* by place: where it was met last, plus one */
    int64_t like;  /* the record is expected to follow as the one after this did; -1 */
    int32_t fresh; /* places met so far: they are numbered as they come */
};

static inline struct trace_record trace_guess_next(const struct trace_guess *guess,
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

static inline void trace_guess_learn(struct trace_guess *guess,
                                     const struct trace_record *records, int64_t position)
{
    int32_t place = records[position].place;

    guess->like = guess->last[place] - 1;
    guess->last[place] = position + 1;
    guess->fresh += place == guess->fresh;
}

static inline bool trace_guess_right(const struct trace_record *guess,
                                     const struct trace_record *record)
{
    return guess->iteration == record->iteration && guess->step == record->step &&
           guess->place == record->place;
}

/* The Nth digest of a trace: in, out of the first record, in, out of the second, … */
static inline struct digest *trace_digest_at(struct trace_record *records, int64_t n)
{
    return n % 2 ? &records[n / 2].out : &records[n / 2].in;
}

#endif
