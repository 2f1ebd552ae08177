/* From counts to words: the verdict of a cell, as a pure function of what its runs add up
 * to.  The counts are sums, maxima and set sizes, so the order in which runs arrive does
 * not matter, and recomputing a cell from its stored runs gives the same verdict. */
#ifndef DAEMON_EVIDENCE_VERDICT_H
#define DAEMON_EVIDENCE_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/evidence/dissent.h"
#include "daemon/evidence/inputs.h"
#include "daemon/jobs/case.h"
#include "daemon/jobs/challenge.h"
#include "daemon/jobs/outcome.h"

enum verdict {
    VERDICT_UNMEASURED,   /* nothing was run */
    VERDICT_REPRODUCIBLE, /* one digest in at least VERDICT_MIN_RUNS fresh processes,
                             while the control varied */
    VERDICT_VARIES,       /* at least two digests, and devices differ with themselves */
    VERDICT_INCONCLUSIVE, /* one digest, but the proof is not complete; the reason says
                             why */
    VERDICT_UNSUPPORTED,  /* this case cannot be computed here */
    VERDICT_FAILING,      /* runs crash, time out, break the protocol, or compute what is
                             out of bound of the float64 reference */
    VERDICT_DEVICES_DISAGREE, /* devices differ from each other; what those earned that
                                 agree is in struct agreeing */
    VERDICT_STALE, /* was reproducible, too long ago; never stored, see verdict_at */
    VERDICT_COUNT
};

enum {
    VERDICT_MIN_RUNS = 2,
    VERDICT_HEALING_RUNS = 20, /* completed runs after a failure that make it history */
    VERDICT_REASON_SIZE = 320,
    VERDICT_VOUCHED_STEP_MS = 3600 * 1000,
    DAMAGED_WORDS_SIZE = 160,
    VERDICT_RULES = 21 /* grows with every change of a verdict or of a reason's words:
                         then stored cells are judged again (db/cells_judge.h) */
};

/* How a reason begins that says: nothing is missing but a control that varied, and its
 * runs were all equal. */
#define VERDICT_CONTROL_SILENT "the control did not vary"

/* How a reason begins that says: nothing is missing but that the control varied, and of
 * one that differed it cannot be told yet whether it did, or its devices differ. */
#define VERDICT_CONTROL_UNDECIDED "it cannot be told yet whether the control varies"

/* The checks of a cell's runs (daemon/jobs/check.h). */
struct checks {
    bool has_reference; /* false for commands of the configuration, which nobody checks */
    int64_t passed, failed, given_up;
    int64_t cut_off;                    /* runs that failed while they compared */
    int64_t digests_passed;             /* different ones */
    int64_t unanswered;                 /* asked, without an answer */
    int64_t share_ppm;                  /* the largest of those that passed */
    char failed_words[CASE_TITLE_SIZE]; /* of the first run, by id, that failed */
};

/* What dissent_judge says of a cell's devices, and what is known of those that are not
 * named. */
struct agreement {
    enum dissent_state state;
    char words[DISSENT_WORDS_SIZE];
    int64_t devices, dissenters, agreeing;
    int64_t beside_others; /* dissenters that depart only while others use them */
    /* Of those that are not named: */
    bool one_digest; /* they show one */
    int64_t runs, iterations;
    int64_t own_runs;    /* under the conditions under which the control varied */
    bool passed, failed; /* their one digest was compared with the reference */
    struct challenges challenges; /* of a command, that were asked on them */
};

/* What the runs of one cell (case x environment) add up to. */
struct evidence {
    int64_t runs[OUTCOME_COUNT]; /* how many ended in each outcome */
    int64_t iterations;          /* of completed runs */
    int64_t distinct_digests;    /* over all iterations of all completed runs */
    bool varied;     /* some of them on one device under the same conditions: what differs
                        only between devices or conditions is no race */
    int64_t devices; /* on which a run completed */
    int64_t disturbed; /* completed runs under circumstances */
    int64_t contended; /* of these, under load */
    int64_t claimed;   /* completed runs whose library promised to be deterministic */
    int64_t warned; /* completed runs whose library said that it is not deterministic */
    int64_t algorithms; /* different ones that completed runs say they used */
    int64_t completed_since_failure; /* completed runs started after the last failure */
    int64_t last_completed_ms;       /* wall clock; 0: never */
    struct checks checks;
    char damaged[DAMAGED_WORDS_SIZE]; /* what of them is not what was stored; "": nothing
                                       */
    struct challenges challenges;     /* of a command of the configuration */
    bool unseeded; /* it declares that it has no seeded inputs: it cannot be challenged */
    struct agreement agreement;        /* zero where there is at most one digest */
    char contested[INPUTS_WORDS_SIZE]; /* who says what the inputs are; "": they are
                                          agreed */
};

/* Why a control varies, and what a variant is exposed to: race, entropy, choice, poison
 * (workloads/workload.h).  Ends with NULL. */
extern const char *const control_kinds[];

/* The control of a cell: the siblings (daemon/jobs/case.h) in the same environment that
 * accumulate in no fixed order, of the kind that the cell is exposed to.
 *
 * A control varied under the conditions (daemon/jobs/options.h) under which its runs
 * showed at least two digests on one device.  It vouches for the variants that completed
 * VERDICT_MIN_RUNS runs under these conditions.  Load, poison or probes that made only
 * the control vary prove nothing of runs without them.  A device that gives other bits
 * than another device is not a race.
 *
 * A control vouches only if it computes what it should: CHECKS_DIGESTS of its digests
 * were seen within bound of the float64 reference, and none out of it.  Random numbers
 * always vary.  A command of the configuration has no reference: it must have passed a
 * challenge (daemon/jobs/challenge.h). */
struct control {
    bool is_control;        /* the judged variant is itself one */
    const char *no_control; /* why the workload has none; NULL when it has.  Then nothing
                               shows that a difference could have been seen: one digest is
                               inconclusive, however often it came */
    int64_t runs;           /* completed runs of the controls together */
    bool differed;          /* one of them has at least two digests, for any reason */
    bool right;             /* of these, one was seen within bound in CHECKS_DIGESTS of
                               its digests, and never out of it */
    struct checks checks;   /* of those that differed, together; failed_words: of one */
    bool is_command;        /* those that differed are commands of the configuration */
    struct challenges challenges; /* of those that differed, together; run: of one */
    bool varied;                  /* as above */
    bool undecided; /* of one that differed on a device, and is right, it cannot be told
                       if it varied, or the device is wrong */
    const char *conditions; /* if it varied: under which, as text ("": none); of several,
                               those of the judged variant, then the first by text */
    int64_t own_runs;       /* completed runs of the judged variant under them */
    int64_t varied_ms; /* when one of them last varied under conditions under which the
                          judged variant has enough runs: two runs of one device differed,
                          and this is the end of the earlier one; 0: never */
};

/* Of a cell in which devices disagree, and those that dissent are named: what the others
 * earned, as if they were alone. */
struct agreeing {
    enum verdict verdict; /* VERDICT_UNMEASURED: nobody is named, or the others differ */
    int64_t devices, runs, iterations;
};

struct judgement {
    enum verdict verdict;
    enum dissent_state agreement;
    struct agreeing agreeing;
    char reason[VERDICT_REASON_SIZE]; /* one sentence with the counts, for people */
    int64_t
        vouched_ms; /* of `reproducible`, or where those that agree are: when the control
                       last varied, in whole hours (VERDICT_VOUCHED_STEP_MS); else 0 */
};

/* Whether a judgement waits for what its control will turn out to be: it is no worse for
 * that. */
bool verdict_waits(enum verdict verdict, const char *reason);

const char *verdict_name(enum verdict verdict);
int verdict_parse(const char *name, enum verdict *ret_verdict); /* 0, or -1 */

/* Precedence: failing because of what was computed, inconclusive because its runs
 * computed from inputs that are contested (daemon/evidence/inputs.h) or are damaged in
 * the database (db/integrity/quarantine.h), varies, devices disagree, inconclusive
 * because two digests do not tell which of these it is, failing, unsupported, unmeasured,
 * inconclusive, reproducible.
 *
 * What only named dissenters showed to be out of bound says something of these devices,
 * not of the case: it is part of their dissent.
 *
 * What is out of bound of the reference is failing for ever, also where it varies: that
 * wrong numbers vary says nothing of the operation.  One check is enough where there is
 * one digest: equal digests are equal bits.  Reproducible needs one that passed; or, of a
 * command, a challenge that passed. */
struct judgement verdict_judge(const struct evidence *evidence,
                               const struct control *control);

/* VERDICT as it stands at NOW_MS: `reproducible` becomes `stale` when its last completed
 * run (LAST_COMPLETED_MS) or the last time that its control varied (VOUCHED_MS) is more
 * than STALE_AFTER_MS old (0: never), or lies as far in the future: the clock was wrong
 * then or is now, and its age is not known.  A red verdict is never hidden. */
enum verdict verdict_at(enum verdict verdict, int64_t last_completed_ms,
                        int64_t vouched_ms, int64_t now_ms, int64_t stale_after_ms);

/* What one device of a cell showed. */
struct device_evidence {
    bool dissents;   /* it is named */
    bool varied;     /* its runs gave two digests under the same conditions */
    int64_t runs;    /* completed */
    int64_t last_ms; /* when the last of them ended */
};

/* What a device earned by its own runs, in a cell whose verdict is stored as CELL and
 * whose devices that are not named earned AGREEING (VERDICT_UNMEASURED: nobody is), as it
 * stands at NOW_MS: the verdict of the cell only where the device has enough runs of its
 * own, and they are not too old.  What others ran since makes it no fresher. */
enum verdict verdict_of_device(enum verdict cell, enum verdict agreeing,
                               int64_t vouched_ms, const struct device_evidence *device,
                               int64_t now_ms, int64_t stale_after_ms);

/* The reason of what verdict_at made stale: what is too old, then REASON, cut. */
void verdict_stale_reason(const char *reason, int64_t last_completed_ms, int64_t now_ms,
                          int64_t stale_after_ms, char ret_reason[VERDICT_REASON_SIZE]);

/* Upper 95 % confidence bound of the probability that a run differs from the first, after
 * RUNS runs with one digest: 1 - 0.05^(1/(n - 1)), about 3/(n - 1).  1 for RUNS < 2.
 *
 * The model: runs are independent, and each gives digest d with a probability q(d) that
 * stays the same.  The first run only names a digest; the n - 1 others are compared with
 * it.  So n equal runs are 0 differences in n - 1 comparisons, and the bound is the exact
 * (Clopper-Pearson) one for these: it holds that q(first) >= 0.05^(1/(n - 1)).  Over all
 * digests, equal runs with a bound that does not hold have the probability
 * sum q(d) q(d)^(n - 1) over d with q(d)^(n - 1) < 0.05, which is less than 0.05.  The
 * exponent 1/n would not do: of two digests with q = 1/2, five runs are equal in 6.25 %
 * of all cases, and 1 - 0.05^(1/5) = 45 % is less than 1/2.
 *
 * Iterations are no runs: they share a process, its allocations and its choices. */
double verdict_difference_bound(int64_t runs);

#endif
