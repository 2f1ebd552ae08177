/* What changed on hosts, stored once each, and what was measured of it since. */
#ifndef DB_VIEWS_CHANGES_H
#define DB_VIEWS_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/jobs/case.h"
#include "daemon/jobs/job.h"

struct tx;

/* How far a change is: it was seen; a survey or screenings measure it, with the cases
 * that only the environments before had; drift was reported.  Where there are no surveys,
 * what other jobs measured is reported. */
enum change_state { CHANGE_SEEN, CHANGE_MEASURING, CHANGE_REPORTED };
const char *change_state_name(enum change_state state);

struct change {
    int64_t number; /* grows */
    char host[CASE_TITLE_SIZE];
    int64_t at_ms;
    enum change_state state;
    const char *facts;   /* JSON as of changes_compare; borrowed for the call */
    const char *reports; /* JSON array, likewise */
    int64_t next_ms;     /* when the host changed next; 0: it did not */
    bool surveyed;       /* a survey began since */
    bool surveying;      /* one that did is open */
    bool due;      /* a device that its host has is to be screened, without job yet */
    bool measured; /* other jobs on its host began since, and all of them are over */
};

/* HOST says FACTS (changes_facts, as text) now: stores a change and its event if they are
 * other than before.  The host must have been seen. */
enum err_code changes_seen(struct tx *tx, const char *host, int64_t at_ms,
                           const char *facts, struct err *err);

/* Newest first, at most LIMIT, numbers below BEFORE (0: from the newest). */
enum err_code changes_each(struct tx *tx, int64_t before, int limit,
                           void (*visit)(void *arg, const struct change *change),
                           void *arg, struct err *err);

/* Those that are not reported, oldest first. */
enum err_code changes_each_open(struct tx *tx, int limit,
                                void (*visit)(void *arg, const struct change *change),
                                void *arg, struct err *err);

/* The number of the latest; 0: there was none. */
enum err_code changes_last(struct tx *tx, int64_t *ret_number, struct err *err);

/* The cases that were measured on what CHANGE is about, in the environments that it had
 * before, and that no survey since measures: the latest first, at most LIMIT. */
enum err_code changes_each_case(struct tx *tx, int64_t change, int limit,
                                void (*visit)(void *arg, const struct case_key *key,
                                              const char *device, const char *stack),
                                void *arg, struct err *err);

/* Stores JOBS, which measure these cases, and that CHANGE is being measured. */
enum err_code changes_measure(struct tx *tx, int64_t change, const struct job *jobs,
                              int job_count, struct err *err);

/* Stores REPORTS (JSON array) and an event of kind "drift". */
enum err_code changes_report(struct tx *tx, int64_t change, int64_t at_ms,
                             const char *reports, struct err *err);

#endif
