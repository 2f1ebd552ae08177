#include "db/runs.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "db/case_keys.h"
#include "db/cases/challenges.h"
#include "db/cells_rows.h"
#include "db/jobs_progress.h"
#include "db/tx.h"
#include "db/upkeep/summaries.h"

static enum err_code set_running(struct tx *tx, int64_t job, int64_t now_ms,
                                 struct err *err)
{
    if (tx_run(tx, err, "UPDATE job SET state = 'running' WHERE number = ?", job) !=
        ERR_OK) {
        return err->code;
    }
    return jobs_add_event(tx, job, now_ms, err);
}

/* What its item says of a run that begins. */
struct beginning {
    int64_t job, case_key;
    bool open, queued, has_reference;
    char device[CASE_TITLE_SIZE], stack[CASE_NAME_SIZE];
};

/* Unknown jobs and items give number 0. */
static enum err_code find_item(struct tx *tx, const struct run_intent *intent,
                               struct beginning *ret, struct err *err)
{
    *ret = (struct beginning){ .job = 0 };
    return tx_fetch(
        tx,
        TX_TARGETS(&ret->job, &ret->open, &ret->queued, &ret->case_key,
                   &ret->has_reference, ret->device, ret->stack),
        err,
        "SELECT j.number, j.state IN ('queued', 'running'), j.state = 'queued',"
        " i.case_key, " HAS_REFERENCE("i") ", i.device, i.stack"
        " FROM job j JOIN job_item i ON i.job = j.number AND i.seq = ?"
        " WHERE j.id = ?",
        intent->item, intent->job);
}

/* What is known of the run's cell, if its device reports again what it reported last. */
static enum err_code find_checks(struct tx *tx, const struct beginning *b,
                                 struct run_intent *intent, bool *ret_enough,
                                 struct err *err)
{
    *ret_enough = false;
    intent->passed[0] = '\0';
    return tx_fetch(
        tx, TX_TARGETS(ret_enough, intent->passed), err,
        "SELECT c.checks_failed > 0 OR c.checks_given_up >= ? OR c.checks_cut_off >= ?"
        " OR c.digests_passed >= ?, (SELECT digest FROM cell_digest g"
        " WHERE g.cell = c.id AND g.checked = 'passed' ORDER BY digest LIMIT 1)"
        " FROM device_stack_environment d"
        " JOIN cell c ON c.case_key = ? AND c.environment = d.environment"
        " WHERE d.device = ? AND d.stack = ?",
        CHECKS_GIVEN_UP, CHECKS_CUT_OFF, CHECKS_DIGESTS, b->case_key, b->device,
        b->stack);
}

enum err_code runs_begin(struct tx *tx, struct run_intent *intent, struct err *err)
{
    struct beginning b;
    int64_t challenged;
    bool enough;

    if (find_item(tx, intent, &b, err) != ERR_OK) {
        return err->code;
    }
    if (!b.job) {
        return err_set(err, ERR_NOT_FOUND, "no job %s with item %d", intent->job,
                       intent->item);
    }
    if (!b.open) {
        return err_set(err, ERR_CONFLICT, "job %s is not open", intent->job);
    }
    if (challenges_begin(tx, b.job, intent, &challenged, err) != ERR_OK) {
        return err_wrap(err, "run %s", intent->id);
    }
    b.case_key = challenged ? challenged : b.case_key;
    if (find_checks(tx, &b, intent, &enough, err) != ERR_OK) {
        return err->code;
    }
    intent->checks = !enough && b.has_reference;
    if (tx_run(tx, err,
               "INSERT INTO run (id, job, item, case_key, challenge, device, intent_ms,"
               " asked) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
               intent->id, b.job, intent->item, b.case_key, intent->challenge != 0,
               b.device, intent->intent_ms, intent->checks) != ERR_OK) {
        return err_wrap(err, "run %s", intent->id);
    }
    return b.queued ? set_running(tx, b.job, intent->intent_ms, err) : ERR_OK;
}

enum err_code runs_started(struct tx *tx, const char *id, int64_t pid,
                           int64_t process_start, const char *boot_id, int64_t now_ms,
                           struct err *err)
{
    struct query q;

    if (tx_run(tx, err,
               "UPDATE run SET pid = ?, process_start = ?, boot_id = ?,"
               " started_ms = max(intent_ms, ?)"
               " WHERE id = ? AND outcome IS NULL",
               pid, process_start, boot_id, now_ms, id) != ERR_OK) {
        return err->code;
    }
    if (sqlite3_changes64(tx->db) > 0) {
        return ERR_OK;
    }
    query_begin(&q, tx, "SELECT 1 FROM run WHERE id = ?", id);
    if (query_step(&q)) {
        err_set(err, ERR_CONFLICT, "run %s is finished already", id);
    } else {
        err_set(err, ERR_NOT_FOUND, "no run %s", id);
    }
    query_end(&q, err);
    return err->code;
}

static enum err_code find_open(struct tx *tx, char (**ret_ids)[ID_SIZE], int *ret_count,
                               struct err *err)
{
    struct query q;

    *ret_ids = NULL;
    *ret_count = 0;
    query_begin(&q, tx, "SELECT id FROM run WHERE outcome IS NULL ORDER BY id");
    while (query_step(&q)) {
        *ret_ids = xgrow(*ret_ids, *ret_count, sizeof **ret_ids);
        query_take_text(&q, (*ret_ids)[*ret_count], ID_SIZE);
        ++*ret_count;
    }
    return query_end(&q, err);
}

enum err_code runs_lose_all(struct tx *tx, const char *cause, int64_t now_ms,
                            int *ret_count, struct err *err)
{
    char(*ids)[ID_SIZE];
    enum err_code code = find_open(tx, &ids, ret_count, err);

    for (int i = 0; i < *ret_count && code == ERR_OK; i++) {
        struct run_record run = { .outcome = OUTCOME_LOST, .finished_ms = now_ms };
        struct run_result result = { .run = &run };
        struct run_effect effect;

        copy_text(run.id, sizeof run.id, ids[i]);
        copy_text(run.cause, sizeof run.cause, cause);
        code = runs_finish(tx, &result, &effect, err);
    }
    free(ids);
    return code;
}

enum err_code runs_each_digest(struct tx *tx, const char *id,
                               void (*visit)(void *arg, const struct run_digest *digest),
                               void *arg, struct err *err)
{
    struct query q;

    query_begin(
        &q, tx,
        "SELECT digest, iterations, first_iteration FROM run_digest WHERE run = ?1"
        " UNION ALL SELECT digest, iterations, 0 FROM run WHERE id = ?1"
        " AND digest IS NOT NULL AND distinct_digests = 1 ORDER BY 3",
        id);
    while (query_step(&q)) {
        struct run_digest digest;

        query_take(&q, digest.digest, &digest.iterations, &digest.first_iteration);
        visit(arg, &digest);
    }
    return query_end(&q, err);
}

enum err_code runs_log(struct tx *tx, const char *id, char **ret_log, int64_t *ret_length,
                       int64_t *ret_written, struct err *err)
{
    struct query q;
    bool found;

    *ret_log = NULL;
    *ret_length = 0;
    *ret_written = 0;
    query_begin(&q, tx,
                "SELECT ifnull(length(l.log), 0), ifnull(l.written, 0),"
                " ifnull(l.log, x'') FROM run r LEFT JOIN run_log l ON l.run = r.id"
                " WHERE r.id = ?",
                id);
    found = query_step(&q);
    if (found) {
        *ret_length = query_take_int(&q);
        *ret_written = query_take_int(&q);
        *ret_log = xmalloc((size_t)*ret_length + 1);
        if (*ret_length) {
            memcpy(*ret_log, query_borrow_blob(&q), (size_t)*ret_length);
        }
        (*ret_log)[*ret_length] = '\0';
    }
    if (query_end(&q, err) != ERR_OK) {
        free(*ret_log);
        return err->code;
    }
    return found ? ERR_OK : summaries_explain(tx, id, err);
}

enum err_code runs_telemetry(struct tx *tx, const char *id, char **ret_start,
                             char **ret_end, struct err *err)
{
    struct query q;

    *ret_start = NULL;
    *ret_end = NULL;
    query_begin(&q, tx, "SELECT at_start, at_end FROM run_telemetry WHERE run = ?", id);
    if (query_step(&q)) {
        *ret_start = query_copy_text(&q);
        *ret_end = query_copy_text(&q);
    }
    return query_end(&q, err);
}

enum err_code runs_asked(struct tx *tx, const char *id, struct run_options *ret_options,
                         int64_t *ret_iterations, struct err *err)
{
    struct query q;
    bool found;

    query_begin(&q, tx,
                "SELECT j.iterations, iif(r.challenge, '', i.options) FROM run r JOIN "
                "job j ON j.number = r.job"
                " JOIN job_item i ON i.job = r.job AND i.seq = r.item WHERE r.id = ?",
                id);
    found = query_step(&q);
    *ret_iterations = found ? query_take_int(&q) : 0;
    run_options_read(found ? query_borrow_text(&q) : "", ret_options);
    return query_end(&q, err);
}

#define RUN_COLUMN(name) ", r." #name
#define RUN_COLUMNS                                                                      \
    "r.id, j.id, r.item, " CASE_KEY_COLUMNS                                              \
    ", r.device, i.stack, i.subject, i.subject_name, e.id, r.cell, r.challenge, "        \
    "r.challenged, r.outcome, "                                                          \
    "r.intent_ms, r.started_ms,"                                                         \
    " r.finished_ms, r.pid, r.process_start, r.boot_id, t.records, t.dropped,"           \
    " r.circumstances, " RUN_DAMAGED_R                                                   \
    ", ifnull(x.state, iif(r.asked AND r.outcome IS NULL, 'asked', NULL)), x.digest, "   \
    "x.share_ppm, x.words" RUN_RESULTS(RUN_COLUMN, RUN_COLUMN, RUN_COLUMN)

#define RUN_JOINS                                                                        \
    " CROSS JOIN job j ON j.number = r.job"                                              \
    " CROSS JOIN job_item i ON i.job = r.job AND i.seq = r.item"                         \
    " LEFT JOIN environment e ON e.number = r.environment"                               \
    " LEFT JOIN run_trace t ON t.run = r.id"                                             \
    " LEFT JOIN run_check x ON x.run = r.id"

/* The parameters of every list: ?1 before, ?2 limit, and, NULL for any, ?3 job, ?4 cell,
 * ?5 workload, ?6 variant, ?7 device, ?8 outcome; ?9: challenges, or the others. */
#define RUN_FILTERS(run)                                                                 \
    " AND (?3 IS NULL OR " run                                                           \
    ".job = (SELECT number FROM job WHERE id = ?3))"                                     \
    " AND (?4 IS NULL OR iif(?9, " run ".challenged, " run                               \
    ".cell) = ?4)"                                                                       \
    " AND (?7 IS NULL OR " run                                                           \
    ".device = ?7)"                                                                      \
    " AND (?8 IS NULL OR " run ".outcome = ?8) AND " run ".challenge = ?9"
#define CASE_FILTERS " (?5 IS NULL OR k.workload = ?5) AND (?6 IS NULL OR k.variant = ?6)"

/* A walk along INDEX, newest first. */
#define RUN_LIST(index, condition)                                                       \
    "SELECT " RUN_COLUMNS " FROM run r " index                                           \
    " CROSS JOIN case_key k ON k.number = r.case_key" RUN_JOINS " WHERE " condition      \
    " r.id < ?1" RUN_FILTERS("r") " AND" CASE_FILTERS " ORDER BY r.id DESC LIMIT ?2"

static const char BY_ID[] = RUN_LIST("", "");
static const char BY_CELL[] = RUN_LIST("INDEXED BY run_cell", "r.cell = ?4 AND");
static const char BY_JOB[] =
    RUN_LIST("INDEXED BY run_job", "r.job = (SELECT number FROM job WHERE id = ?3) AND");
static const char BY_DEVICE[] = RUN_LIST("INDEXED BY run_device", "r.device = ?7 AND");
static const char CHALLENGES[] = RUN_LIST("INDEXED BY run_challenge", "r.challenge AND");
static const char CHALLENGES_OF_CELL[] =
    RUN_LIST("INDEXED BY run_challenged", "r.challenged = ?4 AND");
static const char BY_OUTCOME[] = RUN_LIST(
    "INDEXED BY run_not_completed", "r.outcome = ?8 AND r.outcome <> 'completed' AND");

/* The newest of each case that matches, then the newest of these: a workload that was run
 * once, years ago, is found as fast as any. */
static const char BY_CASE[] =
    "SELECT " RUN_COLUMNS
    " FROM case_key k CROSS JOIN run r ON r.id IN"
    " (SELECT x.id FROM run x INDEXED BY run_case_key WHERE x.case_key = k.number"
    " AND x.id < ?1" RUN_FILTERS("x") " ORDER BY x.id DESC LIMIT ?2)" RUN_JOINS
                                      " WHERE" CASE_FILTERS
                                      " ORDER BY r.id DESC LIMIT ?2";

static const char GET[] =
    "SELECT " RUN_COLUMNS
    " FROM run r"
    " CROSS JOIN case_key k ON k.number = r.case_key" RUN_JOINS " WHERE r.id = ?";

#define TAKE_INTEGER(name) ret_run->name = query_take_int(q);
#define TAKE_TEXT(name)    query_take_text(q, ret_run->name, sizeof ret_run->name);

static void take_run(struct query *q, struct run_record *ret_run)
{
    TAKE_TEXT(id)
    TAKE_TEXT(job)
    ret_run->item = (int)query_take_int(q);
    case_keys_take(q, &ret_run->key);
    TAKE_TEXT(device)
    TAKE_TEXT(stack)
    ret_run->subject = SUBJECT_FRAMEWORK; /* of a damaged file: none of a row */
    subject_parse(query_borrow_text(q), &ret_run->subject);
    TAKE_TEXT(subject_name)
    TAKE_TEXT(environment)
    TAKE_INTEGER(cell)
    ret_run->is_challenge = query_take_int(q);
    TAKE_INTEGER(challenged)
    ret_run->finished = !query_next_is_null(q);
    /* The table's CHECK keeps other names out. */
    if (outcome_parse(query_borrow_text(q), &ret_run->outcome) != 0) {
        ret_run->outcome = OUTCOME_LOST;
    }
    TAKE_INTEGER(intent_ms)
    TAKE_INTEGER(started_ms)
    TAKE_INTEGER(finished_ms)
    TAKE_INTEGER(pid)
    TAKE_INTEGER(process_start)
    TAKE_TEXT(boot_id)
    TAKE_INTEGER(trace_records)
    TAKE_INTEGER(trace_dropped)
    TAKE_TEXT(circumstances)
    ret_run->damaged = query_take_int(q);
    ret_run->check.state = check_state_parse(query_borrow_text(q));
    query_take(q, ret_run->check.digest, &ret_run->check.share_ppm, ret_run->check.words);
    RUN_RESULTS(TAKE_TEXT, TAKE_INTEGER, TAKE_INTEGER)
}

enum err_code runs_get(struct tx *tx, const char *id, struct run_record *ret_run,
                       struct err *err)
{
    struct query q;
    bool found;

    query_begin(&q, tx, GET, id);
    found = query_step(&q);
    if (found) {
        take_run(&q, ret_run);
    }
    if (query_end(&q, err) != ERR_OK) {
        return err->code;
    }
    return found ? ERR_OK : summaries_explain(tx, id, err);
}

enum err_code runs_seal(struct tx *tx, const char *id, struct err *err)
{
    return tx_run(tx, err, "UPDATE run SET sum = " RUN_SUM " WHERE id = ?", id);
}

/* The index whose walk passes over the fewest runs in vain. */
static const char *choose(const struct runs_filter *filter)
{
    if (filter->challenges) {
        return filter->cell ? CHALLENGES_OF_CELL : CHALLENGES;
    }
    if (filter->cell) {
        return BY_CELL;
    }
    if (filter->job[0]) {
        return BY_JOB;
    }
    if (filter->workload[0] || filter->variant[0]) {
        return BY_CASE;
    }
    if (filter->by_outcome && filter->outcome != OUTCOME_COMPLETED) {
        return BY_OUTCOME;
    }
    return filter->device[0] ? BY_DEVICE : BY_ID;
}

enum err_code runs_list(struct tx *tx, const struct runs_filter *filter,
                        const char *before, int limit,
                        void (*visit)(void *arg, const struct run_record *run), void *arg,
                        struct err *err)
{
    struct query q;

    query_begin(&q, tx, choose(filter), before && *before ? before : "~", limit,
                or_null(filter->job), or_null(filter->cell), or_null(filter->workload),
                or_null(filter->variant), or_null(filter->device),
                filter->by_outcome ? outcome_name(filter->outcome) : NULL,
                filter->challenges);
    while (query_step(&q)) {
        struct run_record run;

        take_run(&q, &run);
        visit(arg, &run);
    }
    return query_end(&q, err);
}

/* ?1: the workload of a variant, NULL for any. */
#define OF_WORKLOAD " (?1 IS NULL OR workload = ?1)"

static const char *const names_has[] = {
    [NAME_WORKLOAD] = "SELECT 1 FROM case_key WHERE ?1 IS NULL AND workload = ?2 LIMIT 1",
    [NAME_VARIANT] =
        ("SELECT 1 FROM case_key WHERE" OF_WORKLOAD " AND variant = ?2 LIMIT 1"),
    [NAME_DEVICE] = "SELECT 1 FROM device WHERE ?1 IS NULL AND id = ?2",
    [NAME_JOB] = "SELECT 1 FROM job WHERE ?1 IS NULL AND id = ?2",
};

static const char *const names_each[] = {
    [NAME_WORKLOAD] = "SELECT DISTINCT workload FROM case_key WHERE ?1 IS NULL",
    [NAME_VARIANT] = ("SELECT DISTINCT variant FROM case_key WHERE" OF_WORKLOAD),
    [NAME_DEVICE] = "SELECT id FROM device WHERE ?1 IS NULL",
};

enum err_code runs_names_has(struct tx *tx, enum name_kind kind, const char *of,
                             const char *name, bool *ret_has, struct err *err)
{
    struct query q;

    query_begin(&q, tx, names_has[kind], or_null(of), name);
    *ret_has = query_step(&q);
    return query_end(&q, err);
}

enum err_code runs_names_list(struct tx *tx, enum name_kind kind, const char *of,
                              struct choices *ret_choices, struct err *err)
{
    struct query q;

    query_begin(&q, tx, names_each[kind], or_null(of));
    while (query_step(&q)) {
        choices_add(ret_choices, query_borrow_text(&q));
    }
    return query_end(&q, err);
}
