/* What drift between two environments is told from (daemon/evidence/drift.h), and which
 * environments a host had before and after a time. */
#ifndef DB_VIEWS_DRIFT_H
#define DB_VIEWS_DRIFT_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/base/id.h"
#include "daemon/evidence/drift.h"
#include "daemon/jobs/device.h"

struct tx;

/* A device with a stack that reported an environment last. */
struct drift_place {
    char device[CASE_TITLE_SIZE], stack[CASE_NAME_SIZE];
    bool suspect; /* the device is named as dissenting in some case there */
};

struct drift_end {
    struct environment environment; /* its json is NULL */
    char *json;                     /* its facts */
    struct drift_place *places;     /* that have it now */
    int place_count;
    /* The devices that are named as dissenting in some case there, in order. */
    const char **suspects;
    char (*suspect_names)[CASE_TITLE_SIZE];
    int suspect_count;
};

struct drift {
    struct drift_end from, to;
    char (*hosts)[CASE_TITLE_SIZE]; /* on which a device went from one to the other */
    int host_count;
    struct drift_case *cases; /* not judged */
    int case_count;
    /* Of an environment before and since a time, on one host; else 0 and "". */
    int64_t since_ms, until_ms; /* 0: until now */
    char since_host[CASE_TITLE_SIZE];
    bool unmeasured; /* nothing was measured in between: there are no cases, and what the
                        environment was is not known */
};

/* Reads everything but what can be run.  ERR_NOT_FOUND: there is no such environment;
 * RET_MISSING is which.  The caller releases it, also after an error. */
enum err_code drift_read(struct tx *tx, const char *from, const char *to, int64_t now_ms,
                         int64_t stale_after_ms, struct drift *ret_drift,
                         const char **ret_missing, struct err *err);
void drift_release(struct drift *drift);

/* The same of one environment on HOST before SINCE_MS, but since the change of the host
 * before, and from SINCE_MS up to UNTIL_MS (0: now): after a change that is no part of an
 * environment.  It is told from the SINCE_RUNS_MAX runs of each cell that are nearest to
 * SINCE_MS on either side. */
#define DRIFT_UNMEASURED "not measured before the next change"
enum { SINCE_RUNS_MAX = 200 };
enum err_code drift_read_since(struct tx *tx, const char *environment, const char *host,
                               int64_t since_ms, int64_t until_ms,
                               struct drift *ret_drift, struct err *err);

/* Judges and sorts the cases, by what DEVICES can run now. */
void drift_settle(struct drift *drift, const struct device_stack *devices, int count);

/* What the devices of a host went from and to. */
struct drift_pair {
    char from[DIGEST_TEXT_SIZE], to[DIGEST_TEXT_SIZE]; /* to "": nothing was measured */
};
enum { DRIFT_PAIRS_MAX = 64 };

/* For each device of HOST with each of its stacks: the environment of its last run before
 * SINCE_MS, and that of its last run since, but before UNTIL_MS (0: whenever), where they
 * differ; where none differ, all of them.  Each pair once.  Without a run since, a device
 * has the environment of before, as far as is known; before UNTIL_MS it is left out, and
 * if there is no other one there are pairs without `to`. */
enum err_code drift_pairs(struct tx *tx, const char *host, int64_t since_ms,
                          int64_t until_ms, struct drift_pair ret_pairs[DRIFT_PAIRS_MAX],
                          int *ret_count, struct err *err);

/* drift_read or drift_read_since, as PAIR wants it; without `to` the drift is
 * `unmeasured`. */
enum err_code drift_read_pair(struct tx *tx, const struct drift_pair *pair,
                              const char *host, int64_t since_ms, int64_t until_ms,
                              int64_t now_ms, int64_t stale_after_ms,
                              struct drift *ret_drift, struct err *err);

/* When HOST changed next after AT_MS; 0: it did not. */
enum err_code drift_next_change(struct tx *tx, const char *host, int64_t at_ms,
                                int64_t *ret_ms, struct err *err);

#endif
