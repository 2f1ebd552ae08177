/* Drift: what happened to each case between two environments, one before and one after a
 * change.  Pure.
 *
 * Bits are compared only where each side has one digest in VERDICT_MIN_RUNS fresh
 * processes.  What varies has no bits to compare, and its most frequent digest is never
 * taken for them.  What was measured on one side only cannot be told. */
#ifndef DAEMON_EVIDENCE_DRIFT_H
#define DAEMON_EVIDENCE_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/evidence/subject.h"
#include "daemon/evidence/times.h"
#include "daemon/evidence/verdict.h"
#include "daemon/jobs/case.h"

/* In the order in which they matter. */
enum drift_kind {
    DRIFT_VARIES_NOW,   /* one digest before, several now; of controls, which are to vary,
                            this is another verdict */
    DRIFT_DISAGREE_NOW, /* one digest before; now devices disagree */
    DRIFT_FAILS_NOW,    /* computed before; now it fails, or is unsupported */
    DRIFT_BITS,         /* one digest on each side, and not the same */
    DRIFT_ALGORITHM,    /* another algorithm */
    DRIFT_COST,         /* another time, beyond noise */
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

enum { DRIFT_ALGORITHM_SIZE = 256, DRIFT_REASON_SIZE = 320 };

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
    char digest[DIGEST_TEXT_SIZE];        /* if it is the only one; else "" */
    bool damaged;                         /* its row is not what was stored */
    bool contested;                       /* the inputs of the case are */
    int algorithms;                       /* that its latest runs said */
    char algorithm[DRIFT_ALGORITHM_SIZE]; /* the only one, or how many; "" */
    struct quartiles times;
    enum drift_reach reach;
};

struct drift_case {
    struct case_key key;
    bool is_control;
    enum subject subject;
    char subject_name[SUBJECT_NAME_SIZE];
    struct drift_side from, to;
    double shift; /* times_shift of the two; 0 where it is not known */
    /* The rest is filled by drift_judge. */
    enum drift_kind kind;
    bool bits_told, bits_same;
    bool proven; /* bits that are the same: reproducible on both sides */
    bool algorithm_changed, cost_changed;
    struct cost cost;               /* to / from */
    bool lacks_from, lacks_to;      /* runs that would tell, and can be run */
    char reason[DRIFT_REASON_SIZE]; /* for people */
};

/* Says what happened to CASE. */
void drift_judge(struct drift_case *drift_case);

/* Sorts by kind, then by what cases share: workload, subject, algorithms, variant. */
void drift_sort(struct drift_case *cases, int count);

/* Whether adjacent cases share kind, workload, subject and algorithms. */
bool drift_same_group(const struct drift_case *a, const struct drift_case *b);

struct drift_counts {
    int kinds[DRIFT_KIND_COUNT];
    int same_bits, proven; /* of all kinds; of these, reproducible on both sides */
    int dearer, cheaper;
    double dearer_median, cheaper_median; /* of the ratios of these */
};

struct drift_counts drift_count(const struct drift_case *cases, int count);

/* What was found in one line: "131 cases same bits, 4 changed: …".  CASES are sorted. */
enum { DRIFT_HEADLINE_SIZE = 600 };
void drift_headline(const struct drift_case *cases, int count,
                    char ret_text[DRIFT_HEADLINE_SIZE]);

#endif
