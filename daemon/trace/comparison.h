/* Two runs compared: their traces record by record, what is a cause there and what
 * follows from it; and what that shows: equal, different, or not comparable.  Pure.
 *
 * Records are aligned by position.  Where two records at one position are not of the same
 * iteration, step and place, the traces diverge in structure: nothing behind that is
 * compared, and nothing is guessed.
 *
 * Equal is earned: both runs completed, both traces are whole and of the same probes,
 * every record agrees, and so do the results.  Different is earned by a difference.  All
 * else is not comparable, with the reason. */
#ifndef DAEMON_TRACE_COMPARISON_H
#define DAEMON_TRACE_COMPARISON_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/jobs/case.h"
#include "daemon/jobs/outcome.h"
#include "daemon/trace/trace.h"

/* What a pair of records is. */
enum trace_kind {
    TRACE_SAME,
    TRACE_ABSORBED, /* other inputs, the same output */
    TRACE_INFECTED, /* other inputs, another output */
    TRACE_ROOT      /* the same inputs, another output */
};

const char *trace_kind_name(enum trace_kind kind); /* "equal", "absorbed", … */

enum trace_structure {
    TRACE_DIVERGES_NOWHERE,
    TRACE_DIVERGES_IN_RECORDS, /* at a position, each has another record */
    TRACE_DIVERGES_IN_LENGTH   /* one ends where the other goes on */
};

/* One place over the whole comparison. */
struct trace_place_comparison {
    int64_t compared, absorbed, infected, roots; /* records */
    int64_t first; /* position of its first record that is not the same; -1: all are */
    int64_t first_root; /* position of the first that is a root; -1: none is */
};

struct trace_comparison {
    int64_t compared, steps; /* records, and steps of iterations, before they diverge */
    int64_t same, absorbed, infected, roots;
    int64_t first; /* position of the first record that is not the same; -1: all are */
    int64_t root;  /* position of the first root: the cause; -1: there is none */
    enum trace_structure structure;        /* at position `compared` */
    unsigned char *kinds;                  /* enum trace_kind of each position */
    struct trace_place_comparison *places; /* by the place's index in A */
};

/* Where two outputs differ, the inputs are all that the records read (trace_reads.h).  So
 * a record that reads nothing is not a root if anything before it differs.  Nor is an
 * "output/…" then, nor an "optimizer/…" that differed before.
 *
 * A and B are borrowed for the call.  ret_comparison: caller releases. */
void trace_compare(const struct trace *a, const struct trace *b,
                   struct trace_comparison *ret_comparison);

void trace_comparison_release(struct trace_comparison *comparison);

/* One thing that is compared in addition to the order of the program: all places of a
 * role. */
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

#define COMPARISON_MAP(X)                                                                \
    X(COMPARISON_EQUAL, "equal")                                                         \
    X(COMPARISON_DIFFERENT, "different")                                                 \
    X(COMPARISON_NOT_COMPARABLE, "not_comparable")

enum comparison_verdict {
#define X(verdict, name) verdict,
    COMPARISON_MAP(X)
#undef X
};

const char *comparison_verdict_name(enum comparison_verdict verdict);

/* One of the two runs.  All borrowed. */
struct comparison_side {
    const struct case_key *key;
    bool finished;
    enum outcome outcome;      /* if finished */
    int64_t iterations;        /* asked for */
    const char *probes;        /* what was to be recorded; equal texts mean the same */
    const char *digest;        /* of the first iteration; "" if there is none */
    int64_t distinct_digests;  /* of all iterations */
    const struct trace *trace; /* NULL: none */
};

enum { COMPARISON_REASON_SIZE = 512 };

enum comparison_results {
    COMPARISON_RESULTS_EQUAL,
    COMPARISON_RESULTS_DIFFERENT,
    COMPARISON_RESULTS_UNKNOWN /* not both completed, or both vary within the run */
};

/* What the digests of the two say of their results. */
enum comparison_results comparison_results(const struct comparison_side *a,
                                           const struct comparison_side *b);

/* Whether their traces can be compared at all: finished runs of one workload, size and
 * dtype that both have one.  Otherwise the reason, as below. */
bool comparison_fit(const struct comparison_side *a, const struct comparison_side *b,
                    char ret_reason[COMPARISON_REASON_SIZE]);

/* Of runs that are fit; TRACES is the comparison of their traces.  The reason is one
 * sentence for people, which calls the runs A and B. */
enum comparison_verdict comparison_judge(const struct comparison_side *a,
                                         const struct comparison_side *b,
                                         const struct trace_comparison *traces,
                                         char ret_reason[COMPARISON_REASON_SIZE]);

#endif
