/* Solution codes: which recipes of a profile were seen to work for a workload in an
 * environment.  Pure; codes are derived from verdicts, never quoted. */
#ifndef DAEMON_EVIDENCE_SOLUTION_H
#define DAEMON_EVIDENCE_SOLUTION_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/evidence/profile.h"
#include "daemon/evidence/verdict.h"

enum { SOLUTION_CODE_SIZE = 128 };

/* The state of a documents cell. */
enum solution_state {
    SOLUTION_MEASURED, /* has a code */
    SOLUTION_DECLARED, /* has a code that the documents give and no run can show: every
                          recipe raises */
    SOLUTION_PARTIAL,  /* has a code, which some devices dissent from: the reason says
                          which.  Neither counted as measured nor compared with the
                          documents */
    SOLUTION_INCONCLUSIVE, /* measured, but the proof is not complete */
    SOLUTION_UNMEASURED,
    SOLUTION_STALE,
    SOLUTION_FAILING,
    SOLUTION_UNSUPPORTED, /* no variant the recipes give can be computed here */
    SOLUTION_ABSENT,      /* the documents have no such cell */
    SOLUTION_NO_MODEL,    /* no workload stands for the source: only what the documents
                             say is known.  Counted as nothing */
    SOLUTION_STATES
};
const char *solution_state_name(enum solution_state state);

/* What is known about one variant of one workload in one environment, over all its cases
 * (sizes, dtypes, seeds) of the newest version. */
struct variant_knowledge {
    enum verdict verdict; /* as of now: may be VERDICT_STALE */
    char reason[VERDICT_REASON_SIZE];
    int64_t runs, iterations; /* completed, over the cases that carry the verdict */
    int64_t devices;          /* the largest of these cases */
    int cases;
    int64_t weakest_runs; /* the smallest of their numbers of completed runs */
    bool compared; /* one of them at least has CHECKS_DIGESTS digests that passed or, of a
                      command, passed a challenge (daemon/jobs/challenge.h): else what
                      varies may be wrong numbers, or random ones */
    bool is_command; /* one of them has no reference */
    bool varied;     /* one of these, as in struct evidence */
    /* Of `devices_disagree`: */
    enum verdict agreeing; /* what the other devices earned in each of these cases */
    int64_t of_devices;    /* where the fewest agree: of so many; DEVICES of them do */
};

#define VARIANT_KNOWLEDGE_INIT                                                           \
    {                                                                                    \
        VERDICT_UNMEASURED, "no run has completed", 0, 0, 0, 0, 0, false, false, false,  \
            VERDICT_UNMEASURED, 0                                                        \
    }

/* Joins the verdict of one more case.  Precedence: varies, failing, devices disagree,
 * reproducible, stale,
 * inconclusive, unsupported, unmeasured.  A case that could not be settled does not take
 * back what another case earned; a case that varies or fails does. */
void variant_knowledge_join(struct variant_knowledge *knowledge, enum verdict verdict,
                            const char *reason, const struct evidence *evidence);

/* "the recipes select the default itself: one measured fact". */
extern const char solution_one_fact[];

/* Joins a case in which devices disagree: AGREEING as of now. */
void variant_knowledge_dissent(struct variant_knowledge *knowledge,
                               const struct agreeing *agreeing, const char *reason,
                               const struct evidence *evidence);

struct solution {
    enum solution_state state;
    char code[SOLUTION_CODE_SIZE]; /* "TCD or TDP", "NS", "NS!", "DET"; "" without code */
    char reason[VERDICT_REASON_SIZE]; /* why there is no code; "" with one */
    int variants;                     /* how many different ones the code rests on */
    bool one_fact; /* it has a code, and every recipe selects the variant of "none" */
    int64_t runs, iterations, devices; /* evidence behind it, summed over its variants */
    double difference_bound; /* of the weakest reproducible variant; 1 if there is none */
};

/* CHOICES are those of the profile; KNOWN[i] belongs to CHOICES[i] and is ignored where
 * the recipe raises.  The first rule that applies decides.  A choice is failing,
 * unmeasured, inconclusive or stale: no code, but the reason.  Where devices disagree the
 * choice is what those earned that agree, and the code is partial; it is inconclusive
 * where nobody is named.  No variant can be computed
 * here: no code.  Every choice is reproducible: DET.  "none" raises, cannot be computed
 * here, or did not vary: no code, since there was nothing to solve.  Recipes are
 * reproducible: these, in the profile's order, joined by " or ".  A recipe's variant
 * cannot be computed here: no code, since it was not seen to fail.  A choice differed
 * only between devices or conditions, each of which agreed with itself: no code, since it
 * was not seen to vary.  Every recipe raises: NS!, but only declared: what we
 * run cannot raise.  Otherwise: NS.  Without choices: unmeasured, with no reason. */
struct solution solution_derive(const struct profile_choice *choices,
                                const struct variant_knowledge *known, int count);

#endif
