/* How often something rare strikes: k of n, and what that says of its probability. */
#ifndef DAEMON_EVIDENCE_RATE_H
#define DAEMON_EVIDENCE_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/text.h"

struct cell;

enum { DEPARTURES_TEXT_SIZE = 320 };

/* The 95 % confidence interval of Clopper and Pearson ("The use of confidence or fiducial
 * limits illustrated in the case of the binomial", Biometrika 26, 1934): LOWER is the
 * probability with which K or more of N happen in 2.5 % of all cases, UPPER the one with
 * which K or fewer do.  Whatever the probability is, the interval has it in 95 % of all
 * cases or more, if each of the N happens or not independently of the others. */
struct rate {
    int64_t k, n;
    double lower, upper; /* 0 and 1 where N is 0 */
};

struct rate rate_of(int64_t k, int64_t n); /* 0 <= k <= n */

/* "13-39 %": rounded outwards, so that the interval stays one; returns RET_TEXT. */
const char *rate_interval_text(const struct rate *rate, char ret_text[TEXT_NUMBER_SIZE]);

/* How often a varying cell shows another digest than its most frequent one.
 *
 * Iterations: all but the first of each run.  Where that one alone differs, because a
 * library was loaded or an algorithm chosen in it, nothing strikes later.  Iterations of
 * a run share its process, allocations and choices: their interval holds only as far as
 * they are independent.  None of none where it is not known that the digest is the most
 * frequent one among these, too.
 *
 * Runs: of fresh processes, those that show another digest in any iteration.  So their
 * rate is one of runs as long as these.
 *
 * Both are over all completed runs, on all devices and under all conditions, and take the
 * most frequent digest as given. */
struct departures {
    struct rate iterations, runs;
};

/* False where CELL is not known to vary among like runs. */
bool departures_of(const struct cell *cell, struct departures *ret_departures);

/* One line for people. */
void departures_text(const struct departures *departures,
                     char ret_text[DEPARTURES_TEXT_SIZE]);

#endif
