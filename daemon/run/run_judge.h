/* Judges one run: takes its events, decides how it ended and what its result is by the
 * rules of workloads/PROTOCOL.md ("What makes a run completed").  Pure: no clock, no
 * loop.
 *
 * Only here does a run become `completed`, and only if nothing at all was out of order:
 * the first deviation is kept, and makes it invalid. */
#ifndef DAEMON_RUN_RUN_JUDGE_H
#define DAEMON_RUN_RUN_JUDGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/jobs/case.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/run.h"
#include "daemon/process/run_exit.h"
#include "daemon/run/run_captures.h"
#include "daemon/trace/trace.h"

enum { RUN_JUDGE_CAUSE_SIZE = CASE_TITLE_SIZE * 2 };

/* Private. */
struct run_judge_iteration {
    char digest[DIGEST_TEXT_SIZE];
    char weight_sum[BITS_TEXT_SIZE];
    char loss[BITS_TEXT_SIZE]; /* "": none */
    int64_t index, ns;
};

/* Private, but for the caller's storage. */
struct run_judge {
    struct case_key key; /* what was requested */
    char device[CASE_TITLE_SIZE];
    struct run_options options;
    int64_t asked;
    bool checks;
    char passed[DIGEST_TEXT_SIZE];

    bool started, ended;
    bool checking;                        /* said that it compares now */
    char deviation[RUN_JUDGE_CAUSE_SIZE]; /* the first; "": none */
    enum outcome end_outcome;             /* once ended */
    char end_cause[RUN_JUDGE_CAUSE_SIZE];
    struct run_record run; /* the results so far */
    struct run_judge_iteration *iterations;
    int64_t seen;
    struct trace trace;
    struct run_captures tensors; /* captured */
    char *environment, *environment_title, *libraries, *log;
    char *telemetry_start, *telemetry_end; /* NULL: none */
    struct run_digest *digests;
    int digest_count;
};

/* What was requested: the case, the device and how many iterations.  Copied. */
void run_judge_init(struct run_judge *judge, const struct case_key *key,
                    const char *device, int64_t iterations);

/* The requested options; call before the first event.  Without a call: none.  Copied. */
void run_judge_options(struct run_judge *judge, const struct run_options *options);

/* The run was asked to check itself; call before the first event.  PASSED: the digest
 * that it was told to pass over; "": none.  Copied. */
void run_judge_asks_check(struct run_judge *judge, const char *passed);

/* One event, in the order in which the worker wrote it. */
void run_judge_event(struct run_judge *judge, const json_t *event);

/* Several iterations that the agent tells in one line: as if they came one by one.  Not
 * for what a worker says. */
void run_judge_iterations(struct run_judge *judge, const json_t *event);

/* A line that was not an event; CAUSE says why ("line 3: not JSON"). */
void run_judge_garbage(struct run_judge *judge, const char *cause);

/* The process ended.  Fills outcome, cause and results of ret_run (id, times and what the
 * store knows are left empty) and ret_result, whose pointers are borrowed: RUN is
 * ret_run, the rest is valid until run_judge_release.  The log of EXIT is copied. */
void run_judge_finish(struct run_judge *judge, const struct run_exit *exit,
                      struct run_record *ret_run, struct run_result *ret_result);

void run_judge_release(struct run_judge *judge);

#endif
