/* Where runs of one case diverge, over all pairs of them: the earliest record, in program
 * order, at which two runs that read the same wrote something different.  What a record
 * reads is told as in a comparison of two traces (daemon/trace/trace_reads.h).
 *
 * Traces are fed one after another and not kept.  Records are aligned by position, for as
 * long as iteration, step and place agree.  Runs whose structures diverge are compared up
 * to there; runs of the same structure are compared further.  What lies behind the
 * earliest divergence is forgotten: a later one does not count.  So the memory taken is
 * that of one trace plus a bounded rest.  Pure; not thread-safe. */
#ifndef DAEMON_TRACE_DIVERGENCE_H
#define DAEMON_TRACE_DIVERGENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/trace/trace.h"

struct divergence;

enum {
    /* Different structures that are told apart; runs of others are compared only as far
     * as they go along with one of these. */
    DIVERGENCE_STRUCTURES_MAX = 16,
    /* Values kept beyond the first of each record. */
    DIVERGENCE_VALUES_MAX = 1 << 19
};

/* A record: what the traces that have it agree on. */
struct divergence_place {
    int64_t position; /* in program order, 0 …; -1: there is no such record */
    int32_t iteration;
    int64_t step;
    int64_t occurrence; /* 0: the first record of that iteration, step and place */
    bool says_all;      /* `in` of its record is all that it reads (trace_reads.h) */
    const char *place;  /* borrowed from the divergence; "": the trace ended before */
};

struct divergence_result {
    int64_t traces;    /* fed */
    int64_t records;   /* of the longest */
    int64_t truncated; /* traces that lack records, because there were too many */
    int64_t unplaced;  /* traces that were not compared to their end or to the root,
                          because of the bounds above */

    struct divergence_place root; /* the earliest: in equal, out different */
    int64_t pairs;                /* of traces that have it with equal in */
    int64_t pairs_diverged;       /* of these, with different out */
    int64_t runs_diverged;        /* traces there beyond the most frequent out */
    int64_t example[2];           /* two that diverge, by their order of feeding, 0 … */
    int64_t roots;                /* how many were the earliest at some time */

    /* The first record at which anything differs, in or out; before the root where what
     * makes the difference is not probed. */
    struct divergence_place first;

    /* The first position at which structures diverge, and two records that stand there.
     */
    struct divergence_place structure[2];
    int64_t runs_apart; /* whose structure is not that of the first trace, as far as it
                           was looked at */
};

struct divergence *divergence_new(void);
void divergence_free(struct divergence *divergence); /* NULL is fine */

/* TRACE is read during the call only. */
void divergence_add(struct divergence *divergence, const struct trace *trace);

/* Texts are valid until the next call of divergence_add. */
void divergence_result(const struct divergence *divergence,
                       struct divergence_result *ret_result);

#endif
