#include "db/fsck.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "db/cells_judge.h"
#include "db/connection.h"
#include "db/integrity/acknowledged.h"
#include "db/integrity/checksums.h"
#include "db/integrity/losses.h"
#include "db/integrity/references.h"
#include "db/integrity/totals.h"
#include "db/integrity/witness.h"
#include "db/migrate.h"
#include "db/traces.h"
#include "db/tx.h"
#include "db/upkeep/fsck_cells.h"
#include "db/upkeep/fsck_derived.h"
#include "db/upkeep/summaries.h"

enum { BUSY_TIMEOUT_MS = 5000 };

struct check {
    struct tx *tx;
    void (*report)(void *arg, const char *line);
    /* NULL: nobody is told */
    void (*report_acknowledged)(void *arg, const char *line);
    void (*may_acknowledge)(void *arg, const char *line);
    void (*cell_differs)(void *arg, int64_t cell);
    void *arg;
    struct acknowledged acknowledged;
    bool *differing; /* for each cell there: its sums were found to differ, as is known */
    struct fsck_counts *counts;
};

static void tell_acknowledged(struct check *c, const char *line)
{
    char words[1024];

    snprintf(words, sizeof words, "%.990s, which was acknowledged", line);
    if (c->report_acknowledged) {
        c->report_acknowledged(c->arg, words);
    }
}

/* A fault that may be acknowledged.  Whether it counts: it was not. */
static bool tell(struct check *c, const char *line)
{
    if (acknowledged_has_line(&c->acknowledged, line)) {
        c->counts->acknowledged++;
        tell_acknowledged(c, line);
        return false;
    }
    c->report(c->arg, line);
    if (c->may_acknowledge) {
        c->may_acknowledge(c->arg, line);
    }
    return true;
}

static bool tell_cell(struct check *c, int64_t cell, const char *what)
{
    char line[1024];

    snprintf(line, sizeof line, "cell %" PRId64 ": %s", cell, what);
    if (acknowledged_cell(&c->acknowledged, cell) >= 0) {
        tell_acknowledged(c, line);
        return false;
    }
    c->report(c->arg, line);
    if (c->cell_differs) {
        c->cell_differs(c->arg, cell);
    }
    return true;
}

/* Several lines may be of one cell. */
static void cell_differs(void *arg, int64_t cell, const char *what)
{
    struct check *c = arg;

    if (!tell_cell(c, cell, what)) {
        c->differing[acknowledged_cell(&c->acknowledged, cell)] = true;
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

static void dangles(void *arg, const char *line, int64_t rows)
{
    struct check *c = arg;

    c->counts->dangling += tell(c, line) ? rows : 0;
}

static enum err_code check_references_of(struct check *c, const char *child,
                                         struct err *err)
{
    return references_check(c->tx, child, dangles, c, err);
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
    snprintf(line, sizeof line, "%s %.100s: its row is not what was stored", table, key);
    if (accepted) {
        c->counts->acknowledged++;
        tell_acknowledged(c, line);
        return;
    }
    c->report(c->arg, line);
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

static enum err_code load_acknowledged(struct check *c, struct err *err)
{
    enum err_code code = acknowledged_load(c->tx, &c->acknowledged, err);

    c->differing = xcalloc((size_t)c->acknowledged.cell_count + 1, sizeof(bool));
    return code;
}

static void release(struct check *c)
{
    acknowledged_release(&c->acknowledged);
    free(c->differing);
}

static void trace_is_wrong(void *arg, const char *line)
{
    struct check *c = arg;

    c->counts->traces_damaged += tell(c, line);
}

static enum err_code check_traces(struct check *c, struct err *err)
{
    int64_t ignored; /* counted as they are told */

    return traces_check(c->tx, trace_is_wrong, c, &c->counts->traces, &ignored, err);
}

static void summary_is_wrong(void *arg, const char *line)
{
    dangles(arg, line, 1);
}

static enum err_code check_summaries(struct check *c, struct err *err)
{
    int64_t ignored;

    return summaries_check(c->tx, summary_is_wrong, c, &ignored, err);
}

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

/* Nothing is wrong with what is there. */
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

static bool derived_differs(void *arg, int64_t cell, const char *line)
{
    struct check *c = arg;

    return cell ? tell_cell(c, cell, line) : tell(c, line);
}

static enum err_code check_derived(struct check *c, struct err *err)
{
    struct fsck_derived counts = { 0 };
    enum err_code code = fsck_derived_check(c->tx, derived_differs, c, &counts, err);

    c->counts->jobs += counts.jobs;
    c->counts->jobs_differing += counts.jobs_differing;
    c->counts->cells_differing += counts.cells_differing;
    c->counts->dangling += counts.others_differing;
    return code;
}

static enum err_code check_other_rows(struct check *c, struct err *err)
{
    static const part_fn parts[] = { check_summaries, check_traces, check_count,
                                     check_losses };
    enum err_code code = check_sums(c, err);

    if (c->counts->damaged) {
        return code;
    }
    if (code == ERR_OK) {
        code = each_table(c, check_references_of, err);
    }
    if (code == ERR_OK) {
        code = check_derived(c, err);
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
    if (*ret_go_on) {
        code = in_one_read(c, check_up_to_date, err);
    }
    return *ret_go_on && code == ERR_OK ? in_one_read(c, load_acknowledged, err) : code;
}

/* A cell that differs may have been counted before, for its own row or for what is
 * derived from one of its runs: at least so many differ. */
static void count_cells(struct check *c, const struct recomputed *cells)
{
    int64_t differing = cells->differing;

    for (int i = 0; i < c->acknowledged.cell_count; i++) {
        differing -= c->differing[i];
        c->counts->acknowledged += c->differing[i];
    }
    c->counts->cells = cells->compared;
    c->counts->cells_trusted = cells->trusted;
    if (differing > c->counts->cells_differing) {
        c->counts->cells_differing = differing;
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
                           .report_acknowledged = fsck->report,
                           .may_acknowledge = fsck->may_acknowledge,
                           .cell_differs = fsck->cell_differs,
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
    release(&check);
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
                           .report_acknowledged = fsck->report_acknowledged,
                           .may_acknowledge = fsck->may_acknowledge,
                           .cell_differs = fsck->cell_differs,
                           .arg = fsck->arg,
                           .counts = ret_counts };
    enum err_code code;

    *ret_counts = (struct fsck_counts){ 0 };
    sqlite3_progress_handler(check.tx->db, STOP_OPCODES, is_stopped, fsck->stop);
    code = check_served(&check, fsck, err);
    sqlite3_progress_handler(check.tx->db, 0, NULL, NULL);
    sqlite3_db_release_memory(check.tx->db);
    release(&check);
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
