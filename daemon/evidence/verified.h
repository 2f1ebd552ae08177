/* What was verified on a GPU, and when: the reports of `make gpu-check`.  Those that are
 * committed under tests/gpu/results/ are built in, the configuration may name more.
 * Format: tests/gpu/README.md. */
#ifndef DAEMON_EVIDENCE_VERIFIED_H
#define DAEMON_EVIDENCE_VERIFIED_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/err.h"

/* What one report says of one variant.  Texts are owned by the set. */
struct verified {
    const char *date; /* as in the API: "2026-11-22T10:00:00.000Z" */
    const char *gpu, *driver;
    const char *worker_build;
    int version;         /* of the workload that ran */
    const char *outcome; /* "passed", "failed" or "inconclusive" */
    bool is_reshaped; /* its kernels have another shape since: tests/gpu/reshaped.json */
};

struct verified_set;

struct verified_set *verified_set_new(void);
void verified_set_free(struct verified_set *set); /* NULL is fine */

/* Adds one report; NAME (a file name) is for messages.  ERR_INVALID names the file and
 * what is wrong: a rehearsal, which verifies nothing, is refused too. */
enum err_code verified_set_add(struct verified_set *set, const char *name,
                               const char *text, size_t length, struct err *err);

/* The reports that are built in and those of FILES (array of paths, borrowed; NULL:
 * none). ERR_INVALID names the file.  Caller frees with verified_set_free. */
enum err_code verified_set_load(const json_t *files, struct verified_set **ret_set,
                                struct err *err);

/* The newest report that judged VARIANT of WORKLOAD; false if none did.  A report does
 * not judge a variant that could not run or was left out. */
bool verified_find(const struct verified_set *set, const char *workload,
                   const char *variant, struct verified *ret_verified);

/* What that is worth for VERSION of the workload: its outcome, or "outdated" where
 * another version ran, or kernels that were shaped otherwise. */
const char *verified_outcome(const struct verified *verified, int version);

/* executed.c: what nvcc's PTX showed of each CUDA variant when a CPU executed it: what
 * `make check-ptx` left in tests/ptx/results.json, which is built in.  More than the
 * simulator, which compiles the sources with another compiler, and less than a GPU:
 * nothing there is verified on one. */

/* What it says of one variant.  Texts are owned by the set. */
struct executed {
    const char *date;    /* as in the API */
    const char *toolkit; /* of CUDA: "release 13.0, V13.0.88" */
    const char *target;  /* of the PTX: "sm_75" */
    const char *sizes;   /* "small, medium" */
    int version;         /* of the workload that was executed */
    const char *outcome; /* "passed" or "failed" */
};

struct executed_set;

/* What is built in; empty where nothing is.  Caller frees with executed_set_free. */
struct executed_set *executed_set_load(void);
struct executed_set *executed_set_new(void);
void executed_set_free(struct executed_set *set); /* NULL is fine */

/* Takes TEXT into an empty set; NAME is for messages.  ERR_INVALID says what is wrong
 * with it: the set stays empty. */
enum err_code executed_set_read(struct executed_set *set, const char *name,
                                const char *text, size_t length, struct err *err);

/* False where VARIANT of WORKLOAD was not executed. */
bool executed_find(const struct executed_set *set, const char *workload,
                   const char *variant, struct executed *ret_executed);

/* What that is worth for VERSION of the workload: its outcome, or "outdated". */
const char *executed_outcome(const struct executed *executed, int version);

/* What nvcc's PTX showed on a CPU, which verifies nothing on a GPU: what is built in.
 * Owned by SET. */
const struct executed_set *verified_executed(const struct verified_set *set);

#endif
