/* Drift: what happened to each case between two environments, one before and one after a
 * change.  Pure.
 *
 * Bits are compared only under conditions (daemon/jobs/options.h) under which both sides
 * were measured, and only where each side has one digest in VERDICT_MIN_RUNS fresh
 * processes: that of the devices that are not named as dissenting
 * (daemon/evidence/dissent.h), in this case or, where devices are at odds, in another one
 * of the environment.  Who dissents is said beside it.  Where devices have no
 * digest in common, each device that was measured on both sides is compared with itself.
 * What varies has no bits to compare, and its most frequent digest is never taken for
 * them.  What was measured on one side only cannot be told. */
#ifndef DAEMON_EVIDENCE_DRIFT_H
#define DAEMON_EVIDENCE_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/evidence/dissent.h"
#include "daemon/evidence/subject.h"
#include "daemon/evidence/times.h"
#include "daemon/evidence/verdict.h"
#include "daemon/jobs/case.h"
#include "daemon/jobs/options.h"

/* In the order in which they matter. */
enum drift_kind {
    DRIFT_VARIES_NOW,   /* one digest before, several now; of controls, which are to vary,
                            this is another verdict */
    DRIFT_DISAGREE_NOW, /* the same bits, or none to compare; now devices disagree */
    DRIFT_FAILS_NOW,    /* computed before; now it fails, or is unsupported */
    DRIFT_BITS,        /* one digest on each side, and not the same; devices may disagree,
                          too */
    DRIFT_ALGORITHM,   /* another algorithm */
    DRIFT_COST,        /* another time, beyond noise */
    DRIFT_VERDICT,     /* another verdict: it varied or failed before, or its proof is not
                          what it was */
    DRIFT_UNKNOWN,     /* cannot be told yet */
    DRIFT_DISAPPEARED, /* measured before; there is no such case now */
    DRIFT_APPEARED,    /* measured now only, and before is over */
    DRIFT_VARIES,      /* several digests on both sides */
    DRIFT_NEITHER,     /* fails or is unsupported on both sides */
    DRIFT_SAME,        /* the same one digest on both sides */
    DRIFT_KIND_COUNT
};

/* "varies_now", and for people "vary now". */
const char *drift_kind_name(enum drift_kind kind);
const char *drift_kind_words(enum drift_kind kind);

enum {
    DRIFT_ALGORITHM_SIZE = 256,
    DRIFT_REASON_SIZE = 480,
    DRIFT_NAMES_SIZE = 160,
    DRIFT_CONDITIONS_SIZE = 128
};

/* Whether a case can be run in an environment now. */
enum drift_reach {
    DRIFT_NO_DEVICE, /* no device that has the environment is online */
    DRIFT_NO_CASE,   /* one is, and does not have this case */
    DRIFT_RUNNABLE
};

/* What is known of a case in one of the environments. */
struct drift_side {
    int64_t cell;         /* 0: nothing */
    enum verdict verdict; /* as stored: a measurement of then is not less true later */
    bool stale;           /* it is too long ago now */
    int64_t runs;         /* completed */
    int64_t distinct_digests;
    /* What is compared, as drift_compare says; of another side it is zero. */
    char conditions[DRIFT_CONDITIONS_SIZE]; /* all that it was measured under, for people
                                             */
    struct run_options first;               /* of these, plain ones before all others */
    char digest[DIGEST_TEXT_SIZE]; /* that the devices agree on which are not named; "":
                                      they do not */
    int64_t compared_runs;         /* theirs, under the conditions */
    int devices;                   /* likewise */
    int dissenters;                /* of the others */
    char dissenting[DRIFT_NAMES_SIZE]; /* "GPU-03", "GPU-03, GPU-07 and 2 more" */
    bool suspects_only; /* each one is named in some case of that environment */
    char suspects[DRIFT_NAMES_SIZE];
    bool damaged;                         /* its row is not what was stored */
    bool contested;                       /* the inputs of the case are */
    int algorithms;                       /* that its latest runs said */
    char algorithm[DRIFT_ALGORITHM_SIZE]; /* the only one, or how many; "" */
    struct quartiles times;
    enum drift_reach reach;
    bool place_suspect; /* what could be run is a device that is named */
};

struct drift_case {
    struct case_key key;
    bool is_control;
    enum subject subject;
    char subject_name[SUBJECT_NAME_SIZE];
    struct drift_side from, to;
    double shift;     /* times_shift of the two; 0 where it is not known */
    int64_t least_ns; /* times_least of their backend */
    /* What drift_compare finds. */
    bool apart; /* they were measured under no conditions in common */
    char conditions[DRIFT_CONDITIONS_SIZE]; /* of what is compared; "": plain */
    int common;          /* devices that were measured on both sides under these */
    int common_agreeing; /* of these, named on neither side */
    int told, changed;   /* of those in common, with a digest of their own on both sides;
                            with another one */
    char changed_names[DRIFT_NAMES_SIZE];
    int newly_dissenting; /* named now, and not before */
    /* Within one environment, before and since a time. */
    bool since;
    bool until;   /* and up to another one */
    bool skipped; /* what was measured before is older than the change before */
    /* The rest is filled by drift_judge. */
    enum drift_kind kind;
    bool bits_told, bits_same;
    bool proven; /* bits that are the same: reproducible on both sides */
    bool algorithm_changed, cost_changed;
    struct cost cost;                /* to / from */
    bool lacks_from, lacks_to;       /* runs that would tell, and can be run */
    struct run_circumstances wanted; /* under which */
    char reason[DRIFT_REASON_SIZE];  /* for people */
};

/* The devices of a side of a case, as dissent_judge left them, and the names of all that
 * are named in any case of its environment, in order.  Borrowed. */
struct drift_devices {
    const struct dissent_row *rows;
    int count;
    const char *const *suspects;
    int suspect_count;
};

/* Chooses the conditions under which CASE is compared, plain ones first, and fills in
 * what is compared. */
void drift_compare(struct drift_case *drift_case, const struct drift_devices *from,
                   const struct drift_devices *to);

/* Says what happened to CASE. */
void drift_judge(struct drift_case *drift_case);

/* Sorts by kind, then by what cases share: workload, subject, algorithms, variant. */
void drift_sort(struct drift_case *cases, int count);

/* Whether adjacent cases share kind, workload, subject and algorithms. */
bool drift_same_group(const struct drift_case *a, const struct drift_case *b);

struct drift_counts {
    int kinds[DRIFT_KIND_COUNT];
    int same_bits, proven; /* of all kinds; of these, reproducible on both sides */
    int disagree_too;      /* beside what else happened, devices disagree now */
    int dearer, cheaper;
    double dearer_median, cheaper_median; /* of the ratios of these */
};

struct drift_counts drift_count(const struct drift_case *cases, int count);

/* What was found in one line: "131 cases same bits, 4 changed: …".  CASES are sorted. */
enum { DRIFT_HEADLINE_SIZE = 600 };
void drift_headline(const struct drift_case *cases, int count,
                    char ret_text[DRIFT_HEADLINE_SIZE]);

#endif
