/* A challenge: a run of a command of the configuration that is asked with another seed
 * than its case has, at random and unannounced (workloads/PROTOCOL.md).  A command that
 * computes what it says has other inputs then, and normally another digest.  So a command
 * that prints a constant is noticed, which no number of equal runs could tell.
 *
 * It is a run of its own kind: it counts in no case but that of its own seed, and for no
 * job.  All that its cell learns is how it answered.  Pure. */
#ifndef DAEMON_JOBS_CHALLENGE_H
#define DAEMON_JOBS_CHALLENGE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/id.h"

enum {
    CHALLENGES_REPEATED = 3, /* seeds with the same digest that are no coincidence */
    CHALLENGES_OF_ITEM = 3,  /* of one that needs some: no more in one job */
    /* Without one that passed: then they become rare. */
    CHALLENGES_REPEATED_MAX = 12, /* a chance of one half would have shown by then */
    CHALLENGES_FAILED = 3,
    CHALLENGES_RARE = 32 /* one in so many runs, and fewer with each that was made */
};

/* How the challenges of a cell were answered. */
struct challenges {
    int64_t passed;    /* other inputs and another digest */
    int64_t repeated;  /* other inputs, and a digest that the cell has: with few possible
                          results it may be so by chance */
    int64_t unchanged; /* the inputs of the case, although the seed was another */
    int64_t failed;    /* no result */
    char run[ID_SIZE]; /* the first, by id, that was unchanged; else that repeated */
};

/* Whether the command answers without its inputs: one challenge with unchanged inputs is
 * enough.  The same digest tells from CHALLENGES_REPEATED seeds on, unless others passed:
 * of results that are few, a quarter of all answers may be other ones by chance. */
bool challenges_ignored(const struct challenges *challenges);

/* Whether it is known to compute from its inputs. */
bool challenges_passed(const struct challenges *challenges);

/* What the scheduler draws for a run that it picks. */
struct challenge_offer {
    uint64_t seed; /* never 0, never that of the case; 0: no challenge */
    bool needed;   /* may be one if its cell needs one; drawn so that the last run of an
                      item comes after one at the latest */
    uint32_t draw; /* any number, for those beyond need */
};

/* Whether the run of OFFER is a challenge, where KNOWN is what is known of its cell. */
bool challenge_is_due(const struct challenge_offer *offer,
                      const struct challenges *known);

#endif
