#include "db/fsck.h"
#include "db/dissent/device_states.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/clock.h"
#include "db/cells_judge.h"
#include "db/connection.h"
#include "db/integrity/checksums.h"
#include "db/integrity/losses.h"
#include "db/integrity/totals.h"
#include "db/integrity/witness.h"
#include "db/migrate.h"
#include "db/traces.h"
#include "db/tx.h"
#include "db/upkeep/fsck_cells.h"
#include "db/upkeep/summaries.h"

enum { BUSY_TIMEOUT_MS = 5000 };

struct check {
    struct tx *tx;
    void (*report)(void *arg, const char *line);
    void (*cell_differs)(void *arg, int64_t cell); /* NULL: nobody is told */
    void *arg;
    struct fsck_counts *counts;
};

static void cell_differs(void *arg, int64_t cell, const char *what)
{
    struct check *c = arg;
    char line[1024];

    snprintf(line, sizeof line, "cell %" PRId64 ": %s", cell, what);
    c->report(c->arg, line);
    if (c->cell_differs) {
        c->cell_differs(c->arg, cell);
    }
}

/* Of the whole file, or of TABLE and its indexes. */
static enum err_code check_pages(struct check *c, const char *table, struct err *err)
{
    struct query q;
    enum err_code code = ERR_OK;

    if (table) {
        query_begin(&q, c->tx, "SELECT * FROM pragma_integrity_check(?)", table);
    } else {
        query_begin(&q, c->tx, "PRAGMA integrity_check");
    }
    while (code == ERR_OK && query_step(&q)) {
        const char *line = query_borrow_text(&q);

        if (strcmp(line, "ok") != 0 && tx_integrity(line, err) == ERR_IO) {
            code = ERR_IO;
        } else if (strcmp(line, "ok") != 0) {
            c->counts->damaged++;
            c->report(c->arg, line);
        }
    }
    /* Some damage ends the check instead of being listed. */
    code = query_close(&q, code, err);
    if (code == ERR_CORRUPT) {
        c->counts->damaged++;
        c->report(c->arg, err->message);
        return ERR_OK;
    }
    return code;
}

typedef enum err_code (*part_fn)(struct check *c, struct err *err);

/* Each part sees one instant, and the next a later one: no read lasts long, and so many
 * can be made at the same time. */
static enum err_code in_one_read(struct check *c, part_fn part, struct err *err)
{
    struct err ignored;
    enum err_code code = tx_run(c->tx, err, "BEGIN");

    if (code == ERR_OK) {
        code = part(c, err);
        tx_run(c->tx, &ignored, "ROLLBACK"); /* a COMMIT may fail on damage */
    }
    return code;
}

static enum err_code check_file(struct check *c, struct err *err)
{
    return check_pages(c, NULL, err);
}

typedef enum err_code (*table_fn)(struct check *c, const char *table, struct err *err);

/* Table by table. */
static enum err_code each_table(struct check *c, table_fn part, struct err *err)
{
    char before[64] = "";
    enum err_code code = ERR_OK;

    for (;;) {
        struct err ignored;
        char table[sizeof before] = "";

        code = tx_run(c->tx, err, "BEGIN");
        if (code == ERR_OK) {
            code = tx_fetch(c->tx, TX_TARGETS(table), err,
                            "SELECT name FROM sqlite_schema WHERE type = 'table'"
                            " AND name > ? ORDER BY name LIMIT 1",
                            before);
        }
        if (code == ERR_OK && table[0]) {
            code = part(c, table, err);
        }
        tx_run(c->tx, &ignored, "ROLLBACK");
        if (code != ERR_OK || !table[0]) {
            return code;
        }
        memcpy(before, table, sizeof before);
    }
}

static enum err_code check_references_of(struct check *c, const char *child,
                                         struct err *err)
{
    struct query q;

    query_begin(&q, c->tx,
                "SELECT \"table\", parent, count(*) FROM pragma_foreign_key_check(?)"
                " GROUP BY 1, 2",
                child);
    while (query_step(&q)) {
        const char *table = query_borrow_text(&q);
        const char *parent = query_borrow_text(&q);
        int64_t rows = query_take_int(&q);
        char line[256];

        snprintf(line, sizeof line,
                 "table %s: %" PRId64 " rows refer to a missing row of table %s", table,
                 rows, parent);
        c->counts->dangling += rows;
        c->report(c->arg, line);
    }
    return query_end(&q, err);
}

/* A verdict may depend on a control of other cases if this is wrong. */
static enum err_code check_siblings(struct check *c, struct err *err)
{
    struct query q;

    query_begin(&q, c->tx,
                "SELECT number FROM case_key AS k WHERE siblings <> (SELECT min(number)"
                " FROM case_key WHERE workload = k.workload AND version = k.version"
                " AND size = k.size AND dtype = k.dtype AND seed = k.seed)");
    while (query_step(&q)) {
        char line[80];

        snprintf(line, sizeof line, "case %" PRId64 ": it is not with its siblings",
                 query_take_int(&q));
        c->counts->dangling++;
        c->report(c->arg, line);
    }
    return query_end(&q, err);
}

/* Which inputs count as those of a case follows from its runs. */
static enum err_code check_inputs(struct check *c, struct err *err)
{
    struct query q;

    query_begin(&q, c->tx,
                "WITH seen (siblings, digest, device, runs, run) AS ("
                " SELECT k.siblings, r.input_digest, r.device, count(*), min(r.id)"
                " FROM run r JOIN case_key k ON k.number = r.case_key"
                " WHERE r.outcome = 'completed' OR r.refused GROUP BY 1, 2, 3"
                " UNION ALL SELECT k.siblings, s.input_digest, i.device, s.runs,"
                " s.first_run FROM run_summary s"
                " JOIN job_item i ON i.job = s.job AND i.seq = s.item"
                " JOIN case_key k ON k.number = i.case_key),"
                " fresh AS (SELECT siblings, digest, device, sum(runs), min(run)"
                " FROM seen GROUP BY 1, 2, 3)"
                " SELECT DISTINCT siblings FROM (SELECT * FROM (SELECT * FROM fresh"
                " EXCEPT SELECT * FROM case_input) UNION ALL SELECT * FROM"
                " (SELECT * FROM case_input EXCEPT SELECT * FROM fresh))");
    while (query_step(&q)) {
        char line[80];

        snprintf(line, sizeof line,
                 "case %" PRId64 ": its inputs are not those of its runs",
                 query_take_int(&q));
        c->counts->dangling++;
        c->report(c->arg, line);
    }
    return query_end(&q, err);
}

static enum err_code check_jobs(struct check *c, struct err *err)
{
    struct query q;

    query_begin(&q, c->tx,
                "SELECT j.id, j.runs_total = sum(iif(i.given_up_reason IS NOT NULL,"
                " i.runs_answered, max(i.runs_wanted, i.runs_answered)))"
                " AND j.runs_done = sum(i.runs_answered)"
                " AND j.runs_failed = sum(i.runs_failed)"
                " AND j.items_open = sum(i.given_up_reason IS NULL"
                " AND i.runs_answered < i.runs_wanted)"
                " AND (j.items_open > 0 OR j.state <> 'running' OR EXISTS"
                " (SELECT 1 FROM localisation l WHERE l.job = j.number"
                " AND l.ended_ms IS NULL))"
                " AND sum(i.runs_answered) = (SELECT count(*) FROM run r"
                " WHERE r.job = j.number AND NOT r.challenge AND r.outcome IN"
                " ('completed', 'unsupported',"
                " 'timeout', 'crashed', 'out_of_memory', 'invalid')) + (SELECT"
                " ifnull(sum(s.runs), 0) FROM run_summary s WHERE s.job = j.number)"
                " FROM job j CROSS JOIN job_item i ON i.job = j.number"
                " GROUP BY j.number");
    while (query_step(&q)) {
        const char *id = query_borrow_text(&q);
        char line[160];

        c->counts->jobs++;
        if (query_take_int(&q)) {
            continue;
        }
        snprintf(line, sizeof line, "job %s: its counts are not those of its runs", id);
        c->counts->jobs_differing++;
        c->report(c->arg, line);
    }
    return query_end(&q, err);
}

static void row_damaged(void *arg, const char *table, const char *key, int64_t cell)
{
    struct check *c = arg;
    bool is_cell = strcmp(table, "cell") == 0;
    char line[160];
    int64_t accepted = 0;
    struct err ignored;

    tx_fetch_int(c->tx, &accepted, &ignored,
                 "SELECT count(accepted_ms) FROM quarantine WHERE run = ? AND ? = 'run'",
                 key, table);
    snprintf(line, sizeof line, "%s %.100s: its row is not what was stored%s", table, key,
             accepted ? ", which was acknowledged" : "");
    c->report(c->arg, line);
    if (accepted) {
        return;
    }
    c->counts->cells_differing += is_cell;
    c->counts->rows_damaged += !is_cell;
    c->counts->facts_damaged += !is_cell && strcmp(table, "run") != 0;
    if (cell && c->cell_differs) {
        c->cell_differs(c->arg, cell);
    }
}

static void schema_differs(void *arg, const char *line)
{
    struct check *c = arg;

    c->counts->damaged++;
    c->report(c->arg, line);
}

static enum err_code check_sums(struct check *c, struct err *err)
{
    int64_t missing;

    if (checksums_check_schema(c->tx, schema_differs, c, err) != ERR_OK ||
        c->counts->damaged) {
        return err->code;
    }
    if (checksums_check(c->tx, row_damaged, c, &c->counts->rows, err) != ERR_OK ||
        totals_check(c->tx, c->report, c->arg, &missing, err) != ERR_OK) {
        return err->code;
    }
    c->counts->rows_damaged += missing;
    c->counts->facts_damaged += missing;
    return ERR_OK;
}

/* What is derived from runs one by one, and has no checksum. */
static const struct derived {
    const char *what, *sql;
} derived[] = {
    { "sums of a digest that are not those of its run",
      "SELECT c.cell FROM cell_digest c LEFT JOIN run r ON r.id = c.run"
      " WHERE (c.run IS NULL AND (c.weight_sum IS NOT NULL OR c.loss IS NOT NULL))"
      " OR (c.run IS NOT NULL AND (r.cell IS NOT c.cell"
      " OR r.weight_sum IS NOT c.weight_sum OR r.loss IS NOT c.loss))" },
    { "a last digest of a device that no run has",
      "SELECT d.cell FROM cell_device d WHERE NOT EXISTS (SELECT 1 FROM run r"
      " JOIN job_item i ON i.job = r.job AND i.seq = r.item WHERE r.cell = d.cell"
      " AND r.device = d.device AND i.options = d.options AND " DEVICE_STATE_OF(
          "r.device",
          "r.id") " = d.state"
                  " AND r.outcome = 'completed'"
                  " AND r.finished_ms = d.last_ms AND r.digest = d.last_digest)"
                  " AND NOT EXISTS (SELECT 1 FROM run_summary s JOIN job_item i ON i.job "
                  "= s.job"
                  " AND i.seq = s.item WHERE s.cell = d.cell AND i.device = d.device"
                  " AND i.options = d.options AND " DEVICE_STATE_OF(
                      "i.device",
                      "s.first_run") " = d.state"
                                     " AND NOT s.refused AND s.last_ms = d.last_ms"
                                     " AND s.digest = d.last_digest)" },
    { "an environment of a device that its run did not report",
      "SELECT 0 FROM device_stack_environment d WHERE NOT EXISTS (SELECT 1 FROM run r"
      " JOIN job_item i ON i.job = r.job AND i.seq = r.item"
      " JOIN case_key k ON k.number = r.case_key WHERE r.id = d.run"
      " AND r.device = d.device AND r.environment = d.environment"
      " AND d.stack IN (i.stack, i.stack || '/' || k.workload))" },
    { "an environment of a device with other first and last runs",
      "WITH seen AS (SELECT r.device, i.stack || iif(i.stack = 'external'"
      " OR i.stack GLOB 'external-*', '/' || k.workload, ''), r.environment, min(r.id),"
      " max(r.id) FROM run r JOIN job_item i ON i.job = r.job AND i.seq = r.item"
      " JOIN case_key k ON k.number = r.case_key WHERE r.environment IS NOT NULL"
      " AND ifnull(r.device_read_back, r.device) = r.device GROUP BY 1, 2, 3)"
      " SELECT 0 FROM (SELECT * FROM (SELECT * FROM seen EXCEPT"
      " SELECT device, stack, environment, first_run, last_run FROM device_environment)"
      " UNION ALL SELECT * FROM (SELECT device, stack, environment, first_run, last_run"
      " FROM device_environment EXCEPT SELECT * FROM seen))" },
    { "an environment that was first or last seen at another time",
      "SELECT 0 FROM environment e JOIN (SELECT environment, min(first) AS first,"
      " max(last) AS last FROM (SELECT environment, ifnull(started_ms, intent_ms) AS"
      " first, finished_ms AS last FROM run WHERE environment IS NOT NULL"
      " AND outcome IS NOT NULL UNION ALL SELECT c.environment, s.first_ms, s.last_ms"
      " FROM run_summary s JOIN cell c ON c.id = s.cell) GROUP BY 1) s"
      " ON s.environment = e.number"
      " WHERE (e.first_seen_ms, e.last_seen_ms) <> (s.first, s.last)" },
    { "an environment with another count of cells",
      "SELECT 0 FROM environment e WHERE e.cells <>"
      " (SELECT count(*) FROM cell c WHERE c.environment = e.number)" },
    { "an item with other counts than its runs",
      "SELECT 0 FROM job_item i LEFT JOIN (SELECT job, item, sum(runs) AS runs,"
      " sum(iif(refused, runs, 0)) AS refused, sum(milliseconds) AS milliseconds"
      " FROM run_summary GROUP BY 1, 2) s ON s.job = i.job AND s.item = i.seq"
      " WHERE (i.runs_answered - ifnull(s.runs, 0), i.runs_failed - ifnull(s.refused, 0),"
      " i.runs_unanswered, i.milliseconds - ifnull(s.milliseconds, 0)) <> (SELECT"
      " count(*) FILTER (WHERE outcome IN ('completed', 'unsupported', 'timeout',"
      " 'crashed', 'out_of_memory', 'invalid')), count(*) FILTER (WHERE outcome IN"
      " ('timeout', 'crashed', 'out_of_memory', 'invalid')),"
      " count(*) FILTER (WHERE outcome IN ('lost', 'infra')),"
      " ifnull(sum(ifnull(wall_ns, 0) / 1000000) FILTER (WHERE outcome IS NOT NULL), 0)"
      " FROM run r WHERE r.job = i.job AND r.item = i.seq AND NOT r.challenge)" },
};

static enum err_code check_derived(struct check *c, struct err *err)
{
    for (int i = 0; i < COUNT_OF(derived); i++) {
        struct query q;

        query_begin(&q, c->tx, derived[i].sql);
        while (query_step(&q)) {
            int64_t cell = query_take_int(&q);
            char line[120];

            if (cell) {
                cell_differs(c, cell, derived[i].what);
                c->counts->cells_differing++;
            } else {
                snprintf(line, sizeof line, "there is %s", derived[i].what);
                c->report(c->arg, line);
                c->counts->dangling++;
            }
        }
        if (query_end(&q, err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

/* What this program recomputes can be compared only with what it has stored itself. */
static enum err_code check_up_to_date(struct check *c, struct err *err)
{
    int64_t version = 0;
    int64_t rules;

    if (tx_fetch_int(c->tx, &version, err, "PRAGMA user_version") != ERR_OK) {
        return err->code;
    }
    if (version < migrate_current()) {
        return err_set(err, ERR_CONFLICT,
                       "it has schema %" PRId64
                       " and this program needs %d: start the "
                       "service, which migrates it, and check it then",
                       version, migrate_current());
    }
    if (cells_judged_by(c->tx, &rules, err) != ERR_OK) {
        return err->code;
    }
    return rules == VERDICT_RULES
               ? ERR_OK
               : err_set(
                     err, ERR_CONFLICT,
                     "its cells were judged by the rules of another reprod: start the "
                     "service, which judges them again, and check it then");
}

static enum err_code check_traces(struct check *c, struct err *err)
{
    return traces_check(c->tx, c->report, c->arg, &c->counts->traces,
                        &c->counts->traces_damaged, err);
}

static enum err_code check_summaries(struct check *c, struct err *err)
{
    int64_t wrong = 0;
    enum err_code code = summaries_check(c->tx, c->report, c->arg, &wrong, err);

    c->counts->dangling += wrong;
    return code;
}

/* Nothing is wrong with what is there. */
static enum err_code check_count(struct check *c, struct err *err)
{
    struct commits found;
    enum err_code code = commits_read(c->tx, &found, err);

    if (code == ERR_OK && !found.lineage) {
        c->report(c->arg,
                  "table commits is empty: whether commits that were acknowledged "
                  "are missing is not known");
        c->counts->rows_damaged++;
        c->counts->facts_damaged++;
    }
    return code;
}

static enum err_code check_losses(struct check *c, struct err *err)
{
    struct loss loss;
    char at[CLOCK_RFC3339_SIZE], line[160];

    enum err_code code = losses_read(c->tx, &loss, err);

    if (code != ERR_OK || !loss.open) {
        return code;
    }
    clock_rfc3339(loss.found_ms, at);
    snprintf(line, sizeof line,
             "commits up to %" PRId64
             " were acknowledged and are lost, as was found at %s",
             loss.witnessed, at);
    c->report(c->arg, line);
    c->counts->rows_damaged++;
    c->counts->facts_damaged++;
    return ERR_OK;
}

static enum err_code check_other_rows(struct check *c, struct err *err)
{
    static const part_fn parts[] = { check_derived, check_siblings,  check_inputs,
                                     check_jobs,    check_summaries, check_traces,
                                     check_count,   check_losses };
    enum err_code code = check_sums(c, err);

    if (c->counts->damaged) {
        return code;
    }
    if (code == ERR_OK) {
        code = each_table(c, check_references_of, err);
    }
    for (int i = 0; i < COUNT_OF(parts) && code == ERR_OK; i++) {
        code = in_one_read(c, parts[i], err);
    }
    return code;
}

/* The pages first: what the rows say means nothing in a damaged file. */
static enum err_code check_before_rows(struct check *c, bool by_table, bool *ret_go_on,
                                       struct err *err)
{
    enum err_code code =
        by_table ? each_table(c, check_pages, err) : in_one_read(c, check_file, err);

    *ret_go_on = code == ERR_OK && !c->counts->damaged;
    if (c->counts->damaged) {
        c->report(c->arg, "references, jobs, cells and traces were not checked");
    }
    return *ret_go_on ? in_one_read(c, check_up_to_date, err) : code;
}

/* A cell that differs may have been counted before, for its own row or for what is
 * derived from one of its runs: at least so many differ. */
static void count_cells(struct check *c, const struct recomputed *cells)
{
    c->counts->cells = cells->compared;
    c->counts->cells_trusted = cells->trusted;
    if (cells->differing > c->counts->cells_differing) {
        c->counts->cells_differing = cells->differing;
    }
}

/* Marks are trusted unless all is to be done anew. */
static int64_t trusted_since(bool full, int64_t now_ms)
{
    return full ? INT64_MAX : now_ms - MARKS_MS;
}

/* All but the pages. */
static enum err_code check_rows(struct check *c, const char *path,
                                const struct fsck *fsck, struct tx *marks,
                                struct err *err)
{
    struct fsck_cells cells = { .path = path,
                                .busy_timeout_ms = BUSY_TIMEOUT_MS,
                                .readers = fsck->readers,
                                .now_ms = fsck->now_ms,
                                .marks = marks,
                                .how = { .trusted_since_ms =
                                             trusted_since(fsck->full, fsck->now_ms),
                                         .differs = cell_differs,
                                         .arg = c } };
    enum err_code code = fsck_cells_prepare(c->tx, FSCK_CACHE_LARGE, err);

    if (code == ERR_OK) {
        code = check_other_rows(c, err);
    }
    if (code == ERR_OK && !c->counts->damaged) {
        code = fsck_cells_beside(&cells, c->tx, err);
        count_cells(c, &cells.counts);
        c->counts->marks_failed |= cells.marks_failed;
    }
    return code;
}

static struct tx *open_marks(const char *path, struct fsck_counts *counts)
{
    struct tx *tx = NULL;
    struct err ignored;

    counts->marks_failed =
        connection_open_to_mark(path, BUSY_TIMEOUT_MS, &tx, &ignored) != ERR_OK;
    return tx;
}

/* WITNESSED was read before the database was, and is never ahead of what is durable. */
static enum err_code check_witness(struct check *c, const struct commits *witnessed,
                                   struct err *err)
{
    struct commits found;
    struct loss loss;
    char line[160];

    if (commits_read(c->tx, &found, err) != ERR_OK ||
        losses_read(c->tx, &loss, err) != ERR_OK) {
        return err->code;
    }
    if (found.lineage == witnessed->lineage && found.number < witnessed->number &&
        !loss.open) {
        snprintf(line, sizeof line,
                 "commits that were acknowledged are missing: the last of the database is"
                 " %" PRId64 ", and %" PRId64 " was durable",
                 found.number, witnessed->number);
        c->report(c->arg, line);
        c->counts->rows_damaged++;
        c->counts->facts_damaged++;
    }
    return ERR_OK;
}

enum err_code fsck_file(const char *path, const struct fsck *fsck,
                        struct fsck_counts *ret_counts, struct err *err)
{
    struct check check = { .report = fsck->report,
                           .arg = fsck->arg,
                           .counts = ret_counts };
    const struct commits none = { 0 };
    struct commits witnessed;
    struct tx *marks = NULL;
    bool go_on = false;
    enum err_code code;

    *ret_counts = (struct fsck_counts){ 0 };
    if (witness_ask(path, &none, &witnessed) != WITNESS_OF_ANOTHER) {
        witnessed = none;
    }
    code = connection_open_reader(path, BUSY_TIMEOUT_MS, &check.tx, err);
    if (code == ERR_OK) {
        code = check_before_rows(&check, false, &go_on, err);
    }
    if (code == ERR_OK && go_on && witnessed.number) {
        code = check_witness(&check, &witnessed, err);
    }
    if (code == ERR_OK && go_on) {
        marks = fsck->marks ? open_marks(path, ret_counts) : NULL;
        code = check_rows(&check, path, fsck, marks, err);
    }
    tx_free(check.tx);
    tx_free(marks); /* last, since only a writer takes the log with it */
    return code == ERR_CONFLICT ? err_wrap(err, "%s", path) : code;
}

enum err_code fsck_database(const char *path, void (*report)(void *arg, const char *line),
                            void *arg, struct fsck_counts *ret_counts, struct err *err)
{
    const struct fsck fsck = { .full = true, .readers = 1, .report = report, .arg = arg };

    return fsck_file(path, &fsck, ret_counts, err);
}

enum { STOP_OPCODES = 10000 };

static int is_stopped(void *arg)
{
    return atomic_load((atomic_bool *)arg);
}

static enum err_code check_served(struct check *c, const struct fsck_served *fsck,
                                  struct err *err)
{
    struct recompute_how how = { .trusted_since_ms = trusted_since(false, fsck->now_ms),
                                 .differs = cell_differs,
                                 .right = fsck->right,
                                 .arg = c,
                                 .right_arg = fsck->arg,
                                 .stop = fsck->stop };
    struct recomputed counts = { 0 };
    bool go_on;
    enum err_code code = check_before_rows(c, true, &go_on, err);

    if (code == ERR_OK && go_on) {
        code = fsck_cells_prepare(c->tx, FSCK_CACHE_SMALL, err);
    }
    if (code == ERR_OK && go_on) {
        code = check_other_rows(c, err);
    }
    if (code == ERR_OK && go_on && !c->counts->damaged) {
        code = fsck_cells_one_by_one(c->tx, &how, &counts, err);
        count_cells(c, &counts);
    }
    return code;
}

enum err_code fsck_served(const struct fsck_served *fsck, struct fsck_counts *ret_counts,
                          struct err *err)
{
    struct check check = { .tx = fsck->tx,
                           .report = fsck->report,
                           .cell_differs = fsck->cell_differs,
                           .arg = fsck->arg,
                           .counts = ret_counts };
    enum err_code code;

    *ret_counts = (struct fsck_counts){ 0 };
    sqlite3_progress_handler(check.tx->db, STOP_OPCODES, is_stopped, fsck->stop);
    code = check_served(&check, fsck, err);
    sqlite3_progress_handler(check.tx->db, 0, NULL, NULL);
    sqlite3_db_release_memory(check.tx->db);
    return code;
}

enum err_code fsck_copy(const char *copy, const struct fsck_served *fsck,
                        struct fsck_counts *ret_counts, struct err *err)
{
    struct fsck_served of_copy = *fsck;
    enum err_code code = connection_open_frozen(copy, &of_copy.tx, err);

    *ret_counts = (struct fsck_counts){ 0 };
    if (code == ERR_OK) {
        code = fsck_served(&of_copy, ret_counts, err);
        tx_free(of_copy.tx);
    }
    return code;
}

bool fsck_is_whole(const struct fsck_counts *c)
{
    return !c->damaged && !c->rows_damaged && !c->dangling && !c->cells_differing &&
           !c->jobs_differing && !c->traces_damaged;
}
