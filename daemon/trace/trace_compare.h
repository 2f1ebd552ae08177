/* Two traces, record by record: where they part, what is a cause and what follows from
 * it. Pure.
 *
 * Records are aligned by position.  Where two records at one position are not of the same
 * iteration, step and place, the traces part: nothing behind that is compared, and
 * nothing is guessed. */
#ifndef DAEMON_TRACE_TRACE_COMPARE_H
#define DAEMON_TRACE_TRACE_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/trace/trace.h"

/* What a pair of records is. */
enum trace_kind {
    TRACE_SAME,
    TRACE_ABSORBED, /* other inputs, the same output */
    TRACE_INFECTED, /* other inputs, another output */
    TRACE_ROOT      /* the same inputs, another output */
};

const char *trace_kind_name(enum trace_kind kind); /* "equal", "absorbed", … */

enum trace_parting {
    TRACE_PARTS_NOWHERE,
    TRACE_PARTS_IN_RECORDS, /* at a position, each has another record */
    TRACE_PARTS_IN_LENGTH   /* one ends where the other goes on */
};

/* One place over the whole comparison. */
struct trace_place_comparison {
    int64_t compared, absorbed, infected, roots; /* records */
    int64_t first; /* position of its first record that is not the same; -1: all are */
    int64_t first_root; /* position of the first that is a root; -1: none is */
};

struct trace_comparison {
    int64_t compared, steps; /* records, and steps of iterations, before any parting */
    int64_t same, absorbed, infected, roots;
    int64_t first; /* position of the first record that is not the same; -1: all are */
    int64_t root;  /* position of the first root: the cause; -1: there is none */
    enum trace_parting parting;            /* at position `compared` */
    unsigned char *kinds;                  /* enum trace_kind of each position */
    struct trace_place_comparison *places; /* by the place's index in A */
};

/* Of the inputs counts, where the outputs differ, all that trace_reads.h says a record
 * reads: one that reads nothing is no root where what was before it differs, and neither
 * is an "output/…" nor an "optimizer/…" that was different before.
 *
 * A and B are borrowed for the call.  ret_comparison: caller releases. */
void trace_compare(const struct trace *a, const struct trace *b,
                   struct trace_comparison *ret_comparison);

void trace_comparison_release(struct trace_comparison *comparison);

/* One thing that is compared beside the order of the program: all places of a role. */
struct trace_aspect {
    int64_t compared, different; /* records */
    int64_t first;               /* position of the first that differs; -1: none */
    bool reordered; /* different, but the same digests, as often, in another order */
};

/* All records of the places of ROLE that were compared; of TRACE_ROLE_VARIABLE only the
 * first of each place: what the variables were when the trace begins. */
struct trace_aspect trace_compare_role(const struct trace *a, const struct trace *b,
                                       const struct trace_comparison *comparison,
                                       enum trace_role role);

#endif
