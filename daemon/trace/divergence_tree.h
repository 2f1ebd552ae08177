/* What is known of the runs that were fed to a divergence: for divergence.c, which grows
 * it, and divergence_result.c, which reads it. */
#ifndef DAEMON_TRACE_DIVERGENCE_TREE_H
#define DAEMON_TRACE_DIVERGENCE_TREE_H

#include "daemon/trace/divergence.h"

enum { DIVERGENCE_NONE = -1 };

/* What some of the runs showed at a record. */
struct divergence_value {
    struct digest in, out; /* all that it reads (trace_reads.h), and what it wrote */
    int32_t runs, first_run;
    int32_t next; /* index in `values`, or DIVERGENCE_NONE */
};

struct divergence_position {
    int64_t step;
    int32_t iteration;
    int32_t place; /* index in `names`; DIVERGENCE_NONE: there is no room for it */
    bool says_all; /* in every run */
    struct divergence_value value;
};

/* A stretch of records that runs have in common.  Where structures part, segments branch:
 * together they are a tree, and each run a path from its root. */
struct divergence_segment {
    int parent;   /* DIVERGENCE_NONE for the first */
    int64_t from; /* position of its first record */
    struct divergence_position *positions;
    int64_t count, capacity;
};

struct divergence {
    struct divergence_segment segments[DIVERGENCE_STRUCTURES_MAX];
    int segment_count;
    struct divergence_value *values;
    int32_t value_count, value_capacity;
    struct trace names; /* only places: those that were met */
    int64_t traces, records, truncated, unplaced, roots, apart;
    int64_t first_length; /* records of the first trace */
    int root_segment, first_segment;
    int64_t root, first; /* positions, or DIVERGENCE_NONE */
    int64_t parting;     /* position where structures part first, or DIVERGENCE_NONE */
    struct divergence_position parted[2];
};

/* The value behind V at its record; NULL: V is the last. */
static inline struct divergence_value *
divergence_next_value(const struct divergence *d, const struct divergence_value *v)
{
    return v->next == DIVERGENCE_NONE ? NULL : &d->values[v->next];
}

/* Whether they are the same place at the same step, whatever was read and written. */
static inline bool divergence_same_place(const struct divergence_position *a,
                                         const struct divergence_position *b)
{
    return a->place == b->place && a->step == b->step && a->iteration == b->iteration;
}

#endif
