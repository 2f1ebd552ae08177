/* Cells: everything known about a case in an environment. */
#ifndef DAEMON_JOBS_CELL_H
#define DAEMON_JOBS_CELL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/id.h"
#include "daemon/evidence/subject.h"
#include "daemon/evidence/times.h"
#include "daemon/evidence/verdict.h"
#include "daemon/jobs/case.h"
#include "daemon/jobs/check.h"
#include "daemon/jobs/job.h"

/* How often completed runs showed a digest. */
struct digest_counts {
    int64_t runs, iterations;
    int64_t first_runs; /* their first iteration showed it */
    int64_t only_runs;  /* they showed no other */
};

struct cell {
    int64_t id;
    struct case_key key;
    bool is_control;
    enum subject subject;
    char subject_name[SUBJECT_NAME_SIZE]; /* "" for a model */
    char environment[DIGEST_TEXT_SIZE];
    struct evidence evidence;
    enum verdict verdict; /* as stored: never VERDICT_STALE */
    char reason[VERDICT_REASON_SIZE];
    enum dissent_state agreement; /* this and the next two as in struct judgement */
    struct agreeing agreeing;
    int64_t vouched_ms;
    int64_t changed_ms;        /* when the verdict became what it is */
    int64_t first_ms, last_ms; /* of its runs */
    /* Times, of completed runs that were not disturbed. */
    int64_t min_ns, max_ns;        /* of iterations; 0: none */
    int64_t median_ns_sum;         /* sum of the runs' medians: mean = sum / times.runs */
    struct quartiles times;        /* of the runs' medians */
    char digest[DIGEST_TEXT_SIZE]; /* the most frequent digest: in most runs, then in most
                                      iterations, then the smallest; "": none */
    struct digest_counts digest_counts; /* its */
};

struct cell_digest {
    char digest[DIGEST_TEXT_SIZE];
    int64_t runs, iterations;
    enum check_state checked; /* passed, failed (at least once), or none */
    /* Of the first run (by id) whose last iteration surely showed it; "" if none did. */
    char weight_sum[BITS_TEXT_SIZE], loss[BITS_TEXT_SIZE];
};

/* What completed runs of a cell say that they used, and how many said it. */
struct cell_algorithm {
    char algorithm[CASE_TITLE_SIZE];
    int64_t runs;
};

/* Completed runs of a cell under the same conditions: their options are equal. */
struct cell_conditions {
    char options[RUN_OPTIONS_SIZE]; /* as canonical text; "": none */
    int64_t runs;
    bool varied; /* on one device they gave two digests: under these conditions the cell,
                    if it is a control, vouches for others */
};

struct cell_change {
    int64_t at_ms;
    char run[ID_SIZE]; /* the run that changed it; "" if none */
    enum verdict verdict;
    char reason[VERDICT_REASON_SIZE];
    int64_t runs, iterations, distinct_digests;
};

#endif
