/* Runs that were folded into one row (db/upkeep/retention.h): what is known of them. */
#ifndef DB_UPKEEP_SUMMARIES_H
#define DB_UPKEEP_SUMMARIES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/base/id.h"
#include "daemon/evidence/times.h"
#include "daemon/jobs/run.h"

struct tx;

/* Completed runs of one item that were alike; all texts as in struct run_record. */
struct run_summary {
    int64_t number, cell;
    char job[ID_SIZE];
    int item;
    int64_t runs;
    char first_run[ID_SIZE], last_run[ID_SIZE]; /* the smallest and the greatest id */
    int64_t first_ms, last_ms;                  /* earliest start, latest end */
    int64_t iterations;                         /* of all of them */
    char device[CASE_TITLE_SIZE];
    char options[RUN_OPTIONS_SIZE];
    char digest[DIGEST_TEXT_SIZE]; /* of each of their iterations */
    char input_digest[DIGEST_TEXT_SIZE];
    char weight_sum[BITS_TEXT_SIZE], loss[BITS_TEXT_SIZE];
    char algorithm[CASE_TITLE_SIZE], claim[CASE_NAME_SIZE];
    char circumstances[RUN_CIRCUMSTANCES_SIZE];
    bool contended;
    int64_t min_ns, max_ns, median_ns_sum;
    int64_t times[TIMES_BUCKETS]; /* of their medians */
    bool refused;                 /* they count as invalid, for their inputs alone */
    int64_t folded_ms;
    bool damaged; /* the row is not what was stored (db/integrity/checksums.h) */
};

/* Private to db/.  What column `sum` of run_summary is, and is once `refused` is VALUE;
 * COLUMN stands before each column. */
#define SUMMARY_SUM_OF(column, refused)                                                  \
    "reprod_sum(" column "number, " column "cell, " column "job, " column                \
    "item, " column "runs, " column "ids, " column "first_run, " column                  \
    "last_run, " column "first_ms, " column "last_ms, " column "iterations, " column     \
    "digest, " column "input_digest, " column "weight_sum, " column "loss, " column      \
    "algorithm, " column "claim, " column "circumstances, " column "libraries, " column  \
    "elements, " column "bytes_hashed, " column "min_ns, " column "max_ns, " column      \
    "median_ns_sum, " column "times, " column "milliseconds, " refused ", " column       \
    "folded_ms)"
#define SUMMARY_SUM             SUMMARY_SUM_OF("", "refused")
#define SUMMARY_SUM_IF(refused) SUMMARY_SUM_OF("", refused)

/* The summaries of a cell; they are borrowed for the call. */
enum err_code summaries_each(struct tx *tx, int64_t cell,
                             void (*visit)(void *arg, const struct run_summary *summary),
                             void *arg, struct err *err);

/* Those of a job, by item; without times. */
enum err_code summaries_each_of_job(struct tx *tx, const char *job,
                                    void (*visit)(void *arg,
                                                  const struct run_summary *summary),
                                    void *arg, struct err *err);

/* The one that run ID is in.  ERR_NOT_FOUND: it is in none. */
enum err_code summaries_find(struct tx *tx, const char *id,
                             struct run_summary *ret_summary, struct err *err);

/* Fails with ERR_GONE and what is known of run ID, which was folded, or ERR_NOT_FOUND. */
enum err_code summaries_explain(struct tx *tx, const char *id, struct err *err);

/* How many runs of JOB ("": of any) and of CELL (0: of any) are in summaries; one of the
 * two is given. */
enum err_code summaries_count(struct tx *tx, const char *job, int64_t cell,
                              int64_t *ret_runs, struct err *err);

/* How many runs in the summaries of CELL completed and have an id greater than ID. */
enum err_code summaries_count_since(struct tx *tx, int64_t cell, const char *id,
                                    int64_t *ret_runs, struct err *err);

/* For fsck: calls REPORT(arg, line) for each summary that contradicts itself or the runs
 * that are stored.  Returns how many do. */
enum err_code summaries_check(struct tx *tx, void (*report)(void *arg, const char *line),
                              void *arg, int64_t *ret_wrong, struct err *err);

#endif
