/* What two runs show when they are compared: equal, different, or not comparable.  Pure.
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
#include "daemon/trace/trace_compare.h"

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
