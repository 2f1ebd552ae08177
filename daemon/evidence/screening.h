/* Screening: which devices have to be measured in full before anything else is, and what
 * that showed.  Pure.
 *
 * What is known of a device is what changes only when somebody changes it: its host with
 * its facts, the stacks that serve it, its own attributes, as of changes.h.  Of a stack
 * that counts what a survey measures, too.  A device is screened when it is
 *   new       nothing was known of it;
 *   moved     it is on another host, or in another slot;
 *   upgraded  anything else that is known of it changed;
 *   returned  nothing changed, but it was not seen for long.
 * A value that was not known before is no change, nor is one that is not told now. */
#ifndef DAEMON_EVIDENCE_SCREENING_H
#define DAEMON_EVIDENCE_SCREENING_H

#include <jansson.h>
#include <stdint.h>

#include "daemon/jobs/case.h"

enum screening_reason {
    SCREENING_NOT, /* it need not be */
    SCREENING_NEW,
    SCREENING_RETURNED,
    SCREENING_MOVED,
    SCREENING_UPGRADED
};
const char *screening_reason_name(enum screening_reason reason);

/* What an agent's HELLO says of DEVICE: {"host","stacks","devices"}.  New reference. */
json_t *screening_facts(const json_t *hello, const char *device);

/* What was known of a device, and what is. */
struct screening_past {
    const char *host;     /* "": nothing was known of it */
    const char *facts;    /* JSON */
    int64_t last_seen_ms; /* 0: never */
};
struct screening_present {
    const char *host, *facts;
    int64_t now_ms;
    int64_t returned_ms; /* who was away for longer has returned; 0: nobody has */
};

/* *RET_FACTS: what is known now, with what is not told any more; *RET_WORDS: what
 * changed, as people read it.  Caller frees both. */
enum screening_reason screening_judge(const struct screening_past *past,
                                      const struct screening_present *present,
                                      char **ret_facts, char **ret_words);

/* Of what is known of a device on HOST. */
void screening_fingerprint(const char *host, const char *facts,
                           char ret_digest[DIGEST_TEXT_SIZE]);

/* The cases of a screening that are to be the same, by what the device showed there. */
struct screening_counts {
    int64_t cases;
    int64_t agrees;     /* one digest, which its equals gave, too */
    int64_t dissents;   /* it is named (daemon/evidence/dissent.h) */
    int64_t varies;     /* the workload varies: that says nothing of a device */
    int64_t alone;      /* no equal of it was measured there */
    int64_t undecided;  /* it differs, and what that means cannot be told */
    int64_t failed;     /* a run failed */
    int64_t unmeasured; /* no run told anything */
};

enum screening_outcome { SCREENING_PASSED, SCREENING_DISSENTS, SCREENING_INCONCLUSIVE };
const char *screening_outcome_name(enum screening_outcome outcome);

enum { SCREENING_WORDS_SIZE = 256 };

/* A device passed if it agreed with its equals in every case in which they agree, and
 * there was one.  RET_WORDS says why: "131 of 140 cases agree, 9 vary". */
enum screening_outcome screening_conclude(const struct screening_counts *counts,
                                          char ret_words[SCREENING_WORDS_SIZE]);

#endif
