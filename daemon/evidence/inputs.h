/* The inputs of a case are what the majority of its fresh processes says.
 *
 * All runs of a case and of its siblings compute from the same inputs, whatever the
 * variant, device or environment.  Each run that completes says which digest its inputs
 * have.  A host votes for the digest that more than half of its runs have; a digest that
 * more than half of the hosts vote for is that of the case.  So a host that is broken, or
 * lies, has one vote, however often it runs.  Where no digest has that majority the
 * inputs are contested, until further runs or a person decide.  Pure. */
#ifndef DAEMON_EVIDENCE_INPUTS_H
#define DAEMON_EVIDENCE_INPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/jobs/case.h"

enum { INPUTS_WORDS_SIZE = 224 };

/* How many runs on HOST have inputs with DIGEST.  Texts are borrowed. */
struct input_count {
    const char *digest, *host;
    int64_t runs;
    const char *run; /* one of them */
};

struct inputs {
    bool contested;
    char digest[DIGEST_TEXT_SIZE]; /* of the case; "" where they are contested, or nothing
                                      has completed */
    /* Contested: names two camps, the greatest first.  The words depend on who is in
     * which camp, not on how many runs there are. */
    char words[INPUTS_WORDS_SIZE];
};

/* COUNTS has one entry for each digest and host that belong together.  DECIDED: the
 * digest that a person says is right; "": none. */
struct inputs inputs_judge(const struct input_count *counts, int count,
                           const char *decided);

#endif
