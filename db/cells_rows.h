/* Cells as rows, with the histograms of their times.  Private to db/. */
#ifndef DB_CELLS_ROWS_H
#define DB_CELLS_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/base/id.h"
#include "daemon/jobs/cell.h"
#include "db/case_keys.h"

struct query;
struct tx;

/* A row of table cell with what judging and folding need in addition. */
struct cell_row {
    struct cell cell;
    int64_t case_key, environment;    /* numbers */
    char no_control[CASE_TITLE_SIZE]; /* "" when the workload has a control */
    char last_failed_run[ID_SIZE];    /* "" when none failed */
    char failed_check[ID_SIZE];       /* the first run out of bound; "": none */
    bool damaged; /* its sum is another's (db/integrity/checksums.h) */
};

/* The integers of table cell: the column, its member of struct cell_row, and what fsck
 * calls it.  Reading, storing and comparing follow this list. */
#define CELL_INTEGERS(X)                                                                 \
    X(completed, cell.evidence.runs[OUTCOME_COMPLETED], "completed")                     \
    X(unsupported, cell.evidence.runs[OUTCOME_UNSUPPORTED], "unsupported")               \
    X(timeout, cell.evidence.runs[OUTCOME_TIMEOUT], "timeout")                           \
    X(crashed, cell.evidence.runs[OUTCOME_CRASHED], "crashed")                           \
    X(out_of_memory, cell.evidence.runs[OUTCOME_OUT_OF_MEMORY], "out_of_memory")         \
    X(lost, cell.evidence.runs[OUTCOME_LOST], "lost")                                    \
    X(infra, cell.evidence.runs[OUTCOME_INFRA], "infra")                                 \
    X(cancelled, cell.evidence.runs[OUTCOME_CANCELLED], "cancelled")                     \
    X(invalid, cell.evidence.runs[OUTCOME_INVALID], "invalid")                           \
    X(iterations, cell.evidence.iterations, "iterations")                                \
    X(distinct_digests, cell.evidence.distinct_digests, "distinct digests")              \
    X(devices, cell.evidence.devices, "devices")                                         \
    X(disturbed, cell.evidence.disturbed, "runs under circumstances")                    \
    X(contended, cell.evidence.contended, "runs under contention")                       \
    X(claimed, cell.evidence.claimed, "runs that claim to be deterministic")             \
    X(warned, cell.evidence.warned, "runs that say they are non-deterministic")          \
    X(completed_since_failure, cell.evidence.completed_since_failure,                    \
      "completed since the last failure")                                                \
    X(last_completed_ms, cell.evidence.last_completed_ms, "last completed")              \
    X(first_ms, cell.first_ms, "first run")                                              \
    X(last_ms, cell.last_ms, "last run")                                                 \
    X(min_ns, cell.min_ns, "shortest iteration")                                         \
    X(max_ns, cell.max_ns, "longest iteration")                                          \
    X(median_ns_sum, cell.median_ns_sum, "sum of medians")                               \
    X(checks_passed, cell.evidence.checks.passed, "checks passed")                       \
    X(checks_failed, cell.evidence.checks.failed, "checks failed")                       \
    X(checks_given_up, cell.evidence.checks.given_up, "checks given up")                 \
    X(checks_unanswered, cell.evidence.checks.unanswered, "checks unanswered")           \
    X(checks_cut_off, cell.evidence.checks.cut_off, "checks cut off")                    \
    X(digests_passed, cell.evidence.checks.digests_passed, "digests that passed")        \
    X(check_share_ppm, cell.evidence.checks.share_ppm, "largest share of a bound")       \
    X(challenges_passed, cell.evidence.challenges.passed, "challenges passed")           \
    X(challenges_repeated, cell.evidence.challenges.repeated,                            \
      "challenges with the same digest")                                                 \
    X(challenges_unchanged, cell.evidence.challenges.unchanged,                          \
      "challenges with the same inputs")                                                 \
    X(challenges_failed, cell.evidence.challenges.failed, "challenges without a result") \
    X(digest_runs, cell.digest_counts.runs, "runs of the most frequent digest")          \
    X(digest_iterations, cell.digest_counts.iterations,                                  \
      "iterations of the most frequent digest")                                          \
    X(digest_first_runs, cell.digest_counts.first_runs,                                  \
      "runs that began with the most frequent digest")                                   \
    X(digest_only_runs, cell.digest_counts.only_runs,                                    \
      "runs of nothing but the most frequent digest")

/* Its texts; "" is NULL. */
#define CELL_TEXTS(X)                                                                    \
    X(last_failed_run, last_failed_run, "last failed run")                               \
    X(failed_check, failed_check, "first failed check")                                  \
    X(failed_check_words, cell.evidence.checks.failed_words, "what failed it")           \
    X(challenge_run, cell.evidence.challenges.run, "first challenge that was ignored")   \
    X(digest, cell.digest, "digest")

/* Whether job_item ITEM is of a command of the configuration: those of a stack share no
 * environment. */
#define IS_EXTERNAL(item) item ".stack IN ('external', 'external-cuda')"

/* Whether the workload of job_item ITEM has a float64 reference: commands of the
 * configuration have none, and neither have frameworks, whose workers run their code and
 * know no other. */
#define HAS_REFERENCE(item)                                                              \
    "(NOT " IS_EXTERNAL(item) " AND " item ".subject <> 'framework')"

#define CELL_COLUMN(column, member, what) ", c." #column

/* What the sum of a cell is over (db/integrity/checksums.h), each column behind B. */
#define CELL_SUM(b)                                                                      \
    b "id, " b "case_key, " b "environment, " b "subject, " b "subject_name, " b         \
      "has_reference, " b "completed, " b "unsupported, " b "timeout, " b "crashed, " b  \
      "out_of_memory, " b "lost, " b "infra, " b "cancelled, " b "invalid, " b           \
      "iterations, " b "distinct_digests, " b "devices, " b "disturbed, " b              \
      "contended, " b "claimed, " b "warned, " b "completed_since_failure, " b           \
      "last_completed_ms, " b "first_ms, " b "last_ms, " b "min_ns, " b "max_ns, " b     \
      "median_ns_sum, " b "checks_passed, " b "checks_failed, " b "checks_given_up, " b  \
      "checks_unanswered, " b "checks_cut_off, " b "digests_passed, " b                  \
      "check_share_ppm, " b "challenges_passed, " b "challenges_repeated, " b            \
      "challenges_unchanged, " b "challenges_failed, " b "digest_runs, " b               \
      "digest_iterations, " b "digest_first_runs, " b "digest_only_runs, " b             \
      "last_failed_run, " b "failed_check, " b "failed_check_words, " b                  \
      "challenge_run, " b "digest, " b "verdict, " b "reason, " b "vouched_ms, " b       \
      "changed_ms, " b "agreement, " b "agreeing, " b "agreeing_devices, " b             \
      "agreeing_runs, " b "agreeing_iterations"

/* Whether cell c is what was stored. */
#define CELL_INTACT "(c.sum IS reprod_sum(" CELL_SUM("c.") "))"

/* Whether ROW, of a cell or of its history, waits for its control (verdict_waits). */
#define CELL_WAITS(row)                                                                  \
    "(" row ".verdict = 'inconclusive' AND " row                                         \
    ".reason GLOB '" VERDICT_CONTROL_UNDECIDED "*')"

/* The sum of row h of its history. */
#define CELL_HISTORY_SUM                                                                 \
    "reprod_sum(h.cell, h.at_ms, h.run, h.verdict, h.reason, h.runs, h.iterations,"      \
    " h.distinct_digests, h.vouched_ms)"

/* The columns that cell_rows_take reads, of cell c, case_key k and environment e. */
#define CELL_ROW_COLUMNS                                                                 \
    "c.id, " CASE_KEY_COLUMNS                                                            \
    ", k.is_control, k.no_control, c.subject, c.subject_name, e.id, c.case_key, "        \
    "c.environment, c.verdict, "                                                         \
    "c.reason,"                                                                          \
    " EXISTS (SELECT 1 FROM cell_alike a WHERE a.cell = c.id AND a.varied),"             \
    " c.vouched_ms, c.changed_ms, c.has_reference, NOT " CELL_INTACT                     \
    ", k.unseeded, c.agreement, c.agreeing, c.agreeing_devices, c.agreeing_runs,"        \
    " c.agreeing_iterations" CELL_INTEGERS(CELL_COLUMN) CELL_TEXTS(CELL_COLUMN)

/* The next column, a verdict; the tables' CHECKs keep other names out. */
enum verdict cell_rows_take_verdict(struct query *q);

/* The next column, a subject.  Of a damaged file that has another word:
 * SUBJECT_FRAMEWORK, of which with that name no table has a row. */
enum subject cell_rows_take_subject(struct query *q);

void cell_rows_take(struct query *q, struct cell_row *ret_row);

/* What is not what was stored is shown as inconclusive, whatever it says. */
void cell_rows_distrust(struct cell_row *row);

/* ERR_NOT_FOUND. */
enum err_code cell_rows_load(struct tx *tx, int64_t id, struct cell_row *ret_row,
                             struct err *err);

/* Stores the counts of ROW with JUDGEMENT, in one statement: between two a row could
 * contradict itself. */
enum err_code cell_rows_store(struct tx *tx, const struct cell_row *row,
                              const struct judgement *judgement, int64_t changed_ms,
                              struct err *err);

/* The histogram of the cell's times (daemon/evidence/times.h).
 *
 * Counts one more completed run, which computed under no circumstances (the time of a run
 * under load would falsify the cost of determinism); MEDIAN_NS 0: it has no time, and
 * nothing is counted. */
enum err_code cells_times_add(struct tx *tx, int64_t cell, int64_t median_ns,
                              struct err *err);

/* Counts RUNS more of them in BUCKET. */
enum err_code cells_times_add_many(struct tx *tx, int64_t cell, int bucket, int64_t runs,
                                   struct err *err);

/* Fills cell->times. */
enum err_code cells_times_load(struct tx *tx, struct cell *cell, struct err *err);

/* TIMES_BUCKETS counts as stored. */
enum err_code cells_times_stored(struct tx *tx, int64_t cell, int64_t *ret_counts,
                                 struct err *err);

#endif
