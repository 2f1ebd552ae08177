/* How long runs take: a histogram, its quartiles, and the cost of one variant against
 * another.  Pure.  A histogram is a sum, so any order of runs gives the same one. */
#ifndef DAEMON_EVIDENCE_TIMES_H
#define DAEMON_EVIDENCE_TIMES_H

#include <stdbool.h>
#include <stdint.h>

/* Every power of two is cut into TIMES_PARTS buckets of equal width: a value read from
 * the middle of its bucket is off by at most 1/64 (1.6 %).  db/migrations/0002 counts the
 * stored runs in the same buckets. */
enum { TIMES_PARTS = 32, TIMES_BUCKETS = 58 * TIMES_PARTS };

/* Fewer completed runs have no quartiles worth dividing. */
enum { TIMES_COST_RUNS = 3 };

/* The bucket of NS >= 1; beyond 2^58 ns (9 years) the last. */
int times_bucket(int64_t ns);

/* The middle of BUCKET in nanoseconds, rounded down; at least 1. */
int64_t times_middle(int bucket);

/* Nearest-rank quartiles of the medians of runs, in nanoseconds; all 0 without runs. */
struct quartiles {
    int64_t runs;
    int64_t lower_ns, median_ns, upper_ns;
};

/* COUNTS[i]: runs in bucket i, TIMES_BUCKETS of them. */
struct quartiles times_quartiles(const int64_t *counts);

/* How far the times of SUBJECT lie above those of BASE, of which each is such a
 * histogram: the statistic of Mann and Whitney ("On a test of whether one of two random
 * variables is stochastically larger than the other", Ann. Math. Statist. 18, 1947) as a
 * standard normal deviate, with their correction for ties; below 0 they lie below.  0
 * where one of the two has fewer than TIMES_SHIFT_RUNS runs, or all are in one bucket. */
enum { TIMES_SHIFT_RUNS = 5 };
double times_shift(const int64_t *subject, const int64_t *base);

/* How many times as long as BASE something takes.  Low and high divide opposite
 * quartiles, since the runs of the two are not paired. */
struct cost {
    bool known;     /* both have at least TIMES_COST_RUNS runs; otherwise all is 0 */
    bool too_short; /* both would have, and one of them is shorter than can be told */
    double median, low, high;
};

/* The least median that a cost is told of, in nanoseconds, in the environment with these
 * facts (an object; NULL: 0).  A GPU takes some microseconds to start a kernel, whatever
 * it computes: a ratio of what is shorter than TIMES_GPU_LEAST_NS is one of these.  On a
 * CPU threads are there when the clock starts. */
enum { TIMES_GPU_LEAST_NS = 1000000 };
int64_t times_least(const char *environment_json);

/* What is said of a cost that is too short. */
#define TIMES_TOO_SHORT "shorter than 1 ms on a GPU: launch latency, no cost"

/* Medians below LEAST_NS are too short. */
struct cost times_cost(const struct quartiles *subject, const struct quartiles *base,
                       int64_t least_ns);

#endif
