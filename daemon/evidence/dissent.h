/* Which device is wrong: does a workload vary, or do devices disagree?
 *
 * What is seen.  Each completed run of a device shows one digest or several.  A run
 * *departs* if it shows anything but the majority's digest.  Each device votes for the
 * digest that more than half of its runs show alone; the *majority* is the digest that
 * more than half of the devices vote for.  Devices that vote for the same digest are a
 * *camp*.  Runs are compared only with runs under the same conditions
 * (daemon/jobs/options.h), on devices in the same state (VBIOS, ECC mode, clock policy):
 * a digest that load, poison or a flash changes says nothing of the device that it ran
 * on.
 *
 * The model.  If the workload varies, each run of each device draws from one common
 * distribution, whatever that is.  If a device is wrong, it draws from another one than
 * its equals.  So a device *dissents* if its runs depart and those of the others do not,
 * so often that one common distribution does not explain it.
 *
 * The test.  An e-value is a likelihood ratio E = Q / P.  P is the largest probability
 * that any common distribution gives to what was seen: for b departing runs of n it is
 * max p^b (1 - p)^(n - 1 - b), since the first run only names the digest (as in
 * verdict_difference_bound).  Q is fixed before anything is seen: a mixture over all sets
 * of dissenting devices (2^-k / C(devices, k) for a set of k), over the rate at which a
 * dissenter departs (half: always; half: Jeffreys' prior) and over that of the others
 * (half: never; half: Jeffreys').  Under one common distribution the expectation of E is
 * at most 1 at every number of runs, and by Ville's inequality (1939) the probability
 * that E ever reaches DISSENT_EVIDENCE is at most 1 / DISSENT_EVIDENCE, however often one
 * looks, and however what was seen decides what runs next.  So asking for more runs of a
 * suspect costs nothing.
 * E is computed for each member of the set alone against the devices outside of it.
 *
 * Error rates.  A healthy device is named in a cell with a probability of at most 1e-6
 * over the cell's life; in the simulation of tests/unit/evidence/test_dissent.c none was,
 * in 1,000 fleets of each of 25 kinds, looked at after every run.  One device of eight
 * that is always wrong is named after 7 of its runs beside 5 of each other device, of
 * 4,000 devices after 3.  One that is wrong in a share r of its runs needs about 11 / r.
 *
 * What is assumed, and where it would be wrong:
 * - Most devices are right.  Where fewer than 3 devices were measured, or no digest has a
 *   strict majority, nobody is named.  Where the camps follow the lines between hosts,
 * the host may be the cause, so hosts vote too: without a strict majority of them the
 * hosts differ, and nobody is named.
 * - Equals vary equally often.  Races depend on load and clocks, so where the others
 *   vary, too, only a device whose every run departs is named.
 * - A workload varies if more than half of the devices differ with themselves.  Fewer
 *   could all be wrong.  One device alone has no equals: if it differs with itself, the
 *   workload is said to vary there.  One of several devices that was measured under
 *   conditions of its own has equals, and what is seen there only cannot be told.
 *
 * Pure.  The order of the rows does not matter. */
#ifndef DAEMON_EVIDENCE_DISSENT_H
#define DAEMON_EVIDENCE_DISSENT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/jobs/case.h"

enum {
    DISSENT_WORDS_SIZE = 232,
    DISSENT_DEVICES_MIN = 3, /* with fewer there is no majority */
    DISSENT_SUSPECTS_MAX = 4 /* so many are asked for further runs at a time */
};

#define DISSENT_EVIDENCE 1e6

enum dissent_mark {
    DISSENT_AGREES,   /* its runs show the majority's digest */
    DISSENT_DEPARTS,  /* some do not; why cannot be told yet, or it has no majority to
                         depart from */
    DISSENT_DISSENTS, /* named */
    DISSENT_MARKS
};
const char *dissent_mark_name(enum dissent_mark mark);

/* The runs of one device under the same conditions.  Texts are borrowed. */
struct dissent_row {
    const char *device, *host;
    const char *options; /* the conditions, with the next */
    const char *state;   /* of the device (db/dissent/device_states.h); NULL: not known */
    bool past;           /* it is in another state now: no further run can be made */
    int64_t runs;        /* completed */
    int64_t iterations;
    bool varied;       /* they gave two digests */
    const char *mode;  /* the digest that most of its runs show alone; "": none does */
    int64_t mode_runs; /* how many */

    /* Set by dissent_majorities. */
    const char *majority; /* of the devices under these conditions; NULL: none, or (set by
                             the caller) it is known to be wrong */
    int64_t majority_runs; /* of this row, those that show it alone; -1: must be looked
                              up and filled in */
    /* Set by dissent_judge. */
    enum dissent_mark mark;
    bool wanted; /* further runs of it would help to tell */
};

enum dissent_state {
    DISSENT_NONE,      /* at most one digest, or they differ between conditions only */
    DISSENT_VARIES,    /* devices differ with themselves */
    DISSENT_DISAGREE,  /* devices differ from each other; not all of them are named */
    DISSENT_BOTH,      /* a named device differs from others that vary */
    DISSENT_UNDECIDED, /* cannot be told yet */
    DISSENT_STATES
};
const char *dissent_state_name(enum dissent_state state);
enum dissent_state dissent_state_parse(const char *name); /* NONE for unknown ones */

struct dissent {
    enum dissent_state state;
    int devices;       /* measured */
    int dissenters;    /* of these, named */
    int agreeing;      /* of these, all of whose runs show the majority's digest */
    bool hosts_differ; /* the camps follow the lines between hosts, and no majority of
                          hosts says which is wrong */
    char digest[DIGEST_TEXT_SIZE]; /* the majority's; "": there is none, or another one
                                      under other conditions */
    int64_t agreeing_runs, agreeing_iterations; /* of the devices that are not named */
    char words[DISSENT_WORDS_SIZE];             /* for people; "" for DISSENT_NONE and
                                                   DISSENT_VARIES */
};

/* Orders rows by their conditions; 0: they have the same. */
int dissent_order_conditions(const struct dissent_row *a, const struct dissent_row *b);

/* Sorts ROWS by conditions and device, and finds the majority under each. */
void dissent_majorities(struct dissent_row *rows, int count);

/* After dissent_majorities, and with nothing left to look up. */
struct dissent dissent_judge(struct dissent_row *rows, int count);

/* Fills in DISSENT->words, from ROWS as judged: dissent_judge does it. */
void dissent_words(const struct dissent_row *rows, int count, struct dissent *dissent);

/* The common logarithm of E for a device with DEPARTING of RUNS, which is one of K of
 * DEVICES, beside others with OTHERS_DEPARTING of OTHERS_RUNS. */
double dissent_evidence(int64_t departing, int64_t runs, int64_t others_departing,
                        int64_t others_runs, int k, int devices);

#endif
