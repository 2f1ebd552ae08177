/* A check: the outputs of one iteration of a run compared, element by element, with the
 * workload's float64 reference, by the run itself (workloads/PROTOCOL.md).  Equal digests
 * are equal bits: one check of a digest is one of all runs that showed it.  So a run is
 * told the digest of its cell that passed already, and compares the first iteration that
 * shows another one.  Pure. */
#ifndef DAEMON_JOBS_CHECK_H
#define DAEMON_JOBS_CHECK_H

#include <stdint.h>

#include "daemon/jobs/case.h"

enum check_state {
    CHECK_NONE,   /* the run was not asked */
    CHECK_ASKED,  /* it was, and said nothing: it did not complete, or its worker or agent
                     is older than this service */
    CHECK_PASSED, /* every element is within its bound */
    CHECK_FAILED,
    CHECK_GIVEN_UP, /* the reference took too long, or had no thread or no memory */
    CHECK_CUT_OFF,  /* the run failed while it compared */
    CHECK_KNOWN,    /* it showed nothing but the digest that passed already: nothing was
                       compared, and nothing is stored */
    CHECK_STATES
};

enum {
    CHECK_SECONDS = 300, /* for the reference, in addition to the run's own deadline */
    /* Of a cell: then no run of it is asked any more. */
    CHECKS_GIVEN_UP = 3,
    CHECKS_CUT_OFF = 2,
    CHECKS_DIGESTS = 2 /* different ones, within bound: what varies needs as many before
                          it counts; what does not vary has but one */
};

struct run_check {
    enum check_state state;
    char digest[DIGEST_TEXT_SIZE]; /* passed or failed: of the outputs that were compared
                                    */
    int64_t share_ppm; /* passed: how much of its bound the worst element takes, in
                          millionths, rounded up */
    char words[CASE_TITLE_SIZE]; /* passed or failed: the worst element, "dw[5] is 42, the
                                    reference 0.31 ± 1e-06"; given up: why */
};

/* "asked", …; NULL for CHECK_NONE. */
const char *check_state_name(enum check_state state);

/* CHECK_NONE for any other text, NULL too. */
enum check_state check_state_parse(const char *name);

#endif
