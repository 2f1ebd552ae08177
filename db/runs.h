/* Runs: intent before action, result with its cell in one transaction. */
#ifndef DB_RUNS_H
#define DB_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/choices.h"
#include "daemon/base/err.h"
#include "daemon/evidence/verdict.h"
#include "daemon/jobs/run.h"

struct tx;

enum { RUNS_MORE_MAX = 2 * DISSENT_SUSPECTS_MAX };

/* What storing a result changed, for the scheduler and the log. */
struct run_effect {
    char job[ID_SIZE];
    int item;
    bool is_challenge;    /* no answer of the item */
    enum outcome outcome; /* may differ from what was asked: a completed run whose input
                             digest contradicts the stored one becomes invalid */
    bool item_given_up;
    bool job_finished;
    int64_t cell; /* where it counts; of a challenge, the cell that it challenged */
    enum verdict verdict; /* of the cell, now */
    bool verdict_changed;
    /* Items of the job that want more runs than before, since devices disagree, or may
     * (daemon/evidence/dissent.h). */
    struct {
        int item, runs_wanted;
    } more[RUNS_MORE_MAX];
    int more_count;
};

/* Stores the intent; the job becomes running.  ERR_CONFLICT if the job is not open,
 * ERR_NOT_FOUND if there is no such item.
 *
 * Where intent->offer is due (daemon/jobs/challenge.h), the run is a challenge: of the
 * case with the seed intent->challenge, without the item's options.
 *
 * Says in intent->checks whether the run is asked to check itself: unless its cell, in
 * the environment that its device last reported with its stack, has CHECKS_DIGESTS
 * digests that passed, or one that failed, or CHECKS_GIVEN_UP checks that were given up,
 * or CHECKS_CUT_OFF that were cut off.  intent->passed is the digest that passed there; a
 * run that shows no other compares nothing.  Commands of the configuration are never
 * asked. */
enum err_code runs_begin(struct tx *tx, struct run_intent *intent, struct err *err);

/* Which process it is.  ERR_CONFLICT if the run is finished, ERR_NOT_FOUND. */
enum err_code runs_started(struct tx *tx, const char *id, int64_t pid,
                           int64_t process_start, const char *boot_id, int64_t now_ms,
                           struct err *err);

/* Ends the run, exactly once (ERR_CONFLICT for a second time, with nothing changed): run,
 * digests, log, trace, environment, cell, the cells that depend on it as their control,
 * cell history, item, job and outbox events, all in this transaction.
 *
 * It counts in the cell of its case and the environment that it reported.  A run that
 * died before `start` reported none.  If it is an answer (a failure or `unsupported`), it
 * counts in the environment that the same device last reported with the same stack (an
 * external one: for the same workload), if there is one.  So a workload that always
 * crashes at its start is `failing`, not merely unmeasured.  Otherwise it counts for its
 * job only.  Where it counts is stored with the run and does not change later.
 *
 * A challenge counts in the cell of the case that it computed, and not for its job; the
 * cell of its item's case is told how it answered, and judged.
 *
 * A completed run becomes invalid where it contradicts an earlier one: other inputs of
 * the same case; or, in the same cell, other sums of the same digest, or other work.
 *
 * ERR_INVALID, with nothing changed: a completed run without proof of work (the tables'
 * CHECKs), or whose digests do not add up to its iterations.  ERR_NOT_FOUND. */
enum err_code runs_finish(struct tx *tx, const struct run_result *result,
                          struct run_effect *ret_effect, struct err *err);

/* Ends every unfinished run as lost with CAUSE; returns how many.  Items that were lost
 * more than RUNS_LOST_MAX times are given up. */
enum err_code runs_lose_all(struct tx *tx, const char *cause, int64_t now_ms,
                            int *ret_count, struct err *err);

/* ERR_NOT_FOUND; ERR_GONE: it was folded (db/upkeep/retention.h), with what is known. */
enum err_code runs_get(struct tx *tx, const char *id, struct run_record *ret_run,
                       struct err *err);

/* What a list of runs is narrowed to; "" or 0 means any. */
struct runs_filter {
    char job[ID_SIZE];
    int64_t cell;
    char workload[CASE_NAME_SIZE];
    char variant[CASE_NAME_SIZE];
    char device[CASE_TITLE_SIZE];
    bool by_outcome;
    enum outcome outcome; /* if by_outcome */
    bool challenges; /* these, and no others; CELL: that they challenge.  Else none. */
};

/* The names by which runs can be filtered, as far as the database has them: also those
 * that no worker knows any more. NAME_VARIANT: of the workload OF, or, for "", of any. OF
 * is "" for the others. */
enum name_kind { NAME_WORKLOAD, NAME_VARIANT, NAME_DEVICE, NAME_JOB };

/* Whether there is one called NAME: in a case that was asked for, or a device that was
 * seen. */
enum err_code runs_names_has(struct tx *tx, enum name_kind kind, const char *of,
                             const char *name, bool *ret_has, struct err *err);

/* Adds each to RET_CHOICES.  Not for NAME_JOB: jobs are too many. */
enum err_code runs_names_list(struct tx *tx, enum name_kind kind, const char *of,
                              struct choices *ret_choices, struct err *err);

/* Newest first, at most LIMIT, ids less than BEFORE ("": from the newest). */
enum err_code runs_list(struct tx *tx, const struct runs_filter *filter,
                        const char *before, int limit,
                        void (*visit)(void *arg, const struct run_record *run), void *arg,
                        struct err *err);

/* The distinct digests of a run, by first iteration. */
enum err_code runs_each_digest(struct tx *tx, const char *id,
                               void (*visit)(void *arg, const struct run_digest *digest),
                               void *arg, struct err *err);

/* How run ID was requested: its options and how many iterations; none and 0 for unknown
 * runs. */
enum err_code runs_asked(struct tx *tx, const char *id, struct run_options *ret_options,
                         int64_t *ret_iterations, struct err *err);

/* What the sensors of its device said at the start and at the end of a run: JSON objects,
 * NULL where they said nothing.  Caller frees both.  Unknown runs have none. */
enum err_code runs_telemetry(struct tx *tx, const char *id, char **ret_start,
                             char **ret_end, struct err *err);

/* The log tail: caller frees ret_log (never NULL).  Fails as runs_get. */
enum err_code runs_log(struct tx *tx, const char *id, char **ret_log, int64_t *ret_length,
                       int64_t *ret_written, struct err *err);

/* Private to db/.  The columns of table run, and members of struct run_record, that the
 * end of a run fills in.  TEXT: NULL for ""; COUNT: never NULL; NUMBER: NULL for 0.
 * Reading and storing follow this list. */
#define RUN_RESULTS(TEXT, COUNT, NUMBER)                                                 \
    TEXT(cause)                                                                          \
    COUNT(iterations)                                                                    \
    COUNT(distinct_digests)                                                              \
    TEXT(digest)                                                                         \
    TEXT(input_digest)                                                                   \
    TEXT(weight_sum)                                                                     \
    TEXT(loss)                                                                           \
    TEXT(algorithm)                                                                      \
    TEXT(claim)                                                                          \
    NUMBER(min_ns)                                                                       \
    NUMBER(median_ns)                                                                    \
    NUMBER(max_ns)                                                                       \
    NUMBER(elements)                                                                     \
    NUMBER(bytes_hashed)                                                                 \
    TEXT(device_read_back)                                                               \
    NUMBER(wall_ns)                                                                      \
    NUMBER(max_rss_kb)

/* The sum of a run (db/integrity/checksums.h) as an expression: of table "run", of its
 * alias r, or, in the statement that stores its end, of the parameters that it binds by
 * name. */
#define RUN_SUM_KEPT(run)                                                                \
    "reprod_sum(" run ".id, " run ".job, " run ".item, " run ".case_key, " run           \
    ".device, " run ".challenge, " run ".intent_ms, " run ".pid, " run                   \
    ".process_start, " run ".boot_id"
#define RUN_SUM_ROWS(run)                                                                \
    ", (SELECT reprod_sums(d.digest, d.iterations, d.first_iteration)"                   \
    " FROM run_digest d WHERE d.run = " run                                              \
    ".id)"                                                                               \
    ", (SELECT reprod_sums(k.state, k.digest, k.share_ppm, k.words)"                     \
    " FROM run_check k WHERE k.run = " run ".id))"
#define RUN_SUM_COLUMNS(X)                                                               \
    X(started_ms)                                                                        \
    X(finished_ms)                                                                       \
    X(environment)                                                                       \
    X(cell)                                                                              \
    X(challenged)                                                                        \
    X(libraries)                                                                         \
    X(outcome)                                                                           \
    X(circumstances)                                                                     \
    X(refused)                                                                           \
    RUN_RESULTS(X, X, X)
#define RUN_SUM_OF_RUN(name)   ", run." #name
#define RUN_SUM_OF_R(name)     ", r." #name
#define RUN_SUM_OF_BOUND(name) ", :" #name
#define RUN_SUM_BOUND                                                                    \
    RUN_SUM_KEPT("run") RUN_SUM_COLUMNS(RUN_SUM_OF_BOUND) RUN_SUM_ROWS("run")
#define RUN_SUM_BOUND_ALONE /* without rows of digests and of a check */                 \
    RUN_SUM_KEPT("run") RUN_SUM_COLUMNS(RUN_SUM_OF_BOUND) ", 0, 0)"
#define RUN_SUM   RUN_SUM_KEPT("run") RUN_SUM_COLUMNS(RUN_SUM_OF_RUN) RUN_SUM_ROWS("run")
#define RUN_SUM_R RUN_SUM_KEPT("r") RUN_SUM_COLUMNS(RUN_SUM_OF_R) RUN_SUM_ROWS("r")

/* Whether run r is finished and not what was stored. */
#define RUN_DAMAGED_R "(r.outcome IS NOT NULL AND r.sum IS NOT " RUN_SUM_R ")"

/* Makes the sum of run ID, which was intact, follow what was changed in its row. */
enum err_code runs_seal(struct tx *tx, const char *id, struct err *err);

#endif
