#include "db/integrity/checksums.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/buf.h"
#include "daemon/base/mem.h"
#include "db/cells_rows.h"
#include "db/migrate.h"
#include "db/runs.h"
#include "db/tx.h"
#include "db/upkeep/summaries.h"

/* Which rows have a sum. */

enum { KEYS_MAX = 3 };

/* In `sum`, @ stands before each column. */
static const struct summed {
    const char *table;
    const char *keys[KEYS_MAX]; /* of its primary key */
    const char *cell;           /* in which its rows count */
    const char *sum;
    const char *unless; /* what has none */
    bool watched;       /* by triggers */
} tables[] = {
    { "run", { "id" }, "r.cell", RUN_SUM_R, "r.outcome IS NULL", false },
    { "cell", { "id" }, "r.id", "reprod_sum(" CELL_SUM("@") ")", "false", false },
    { "cell_history",
      { "cell", "at_ms" },
      "r.cell",
      "reprod_sum(@cell, @at_ms, @run, @verdict, @reason, @runs, @iterations,"
      " @distinct_digests, @vouched_ms)",
      "false",
      false },
    { "run_summary",
      { "number" },
      "r.cell",
      SUMMARY_SUM_OF("@", "@refused"),
      "false",
      false },
    { "run_log", { "run" }, "0", "reprod_sum(@run, @log, @written)", "false", false },
    { "run_telemetry",
      { "run" },
      "0",
      "reprod_sum(@run, @at_start, @at_end)",
      "false",
      false },
    { "run_trace",
      { "run" },
      "0",
      "reprod_sum(@run, @trace, @records, @dropped)",
      "false",
      false },
    { "run_tensor",
      { "run", "role", "seq" },
      "0",
      "reprod_sum(@run, @role, @seq, @name, @blob)",
      "false",
      false },
    { "tensor_blob",
      { "number" },
      "0",
      "reprod_sum(@number, @digest, @dtype, @shape, @total, @bytes, @data)",
      "false",
      true },
    { "job",
      { "number" },
      "0",
      "reprod_sum(@number, @id, @state, @priority, @survey, @stop_when_varies,"
      " @iterations, @timeout_ms, @created_ms, @finished_ms, @request,"
      " @idempotency_key)",
      "false",
      true },
    { "job_item",
      { "job", "seq" },
      "0",
      "reprod_sum(@job, @seq, @case_key, @device, @stack, @runs_wanted,"
      " @given_up_reason, @options, @timeout_ms, @subject, @subject_name, @runs_more)",
      "false",
      true },
    { "case_key",
      { "number" },
      "0",
      "reprod_sum(@number, @workload, @version, @variant, @size, @dtype, @seed,"
      " @is_control, @no_control, @siblings, @kind, @unseeded, @challenge)",
      "false",
      true },
    { "environment",
      { "number" },
      "0",
      "reprod_sum(@number, @id, @title, @json)",
      "false",
      true },
    { "library_list", { "number" }, "0", "reprod_sum(@number, @json)", "false", true },
    { "localisation",
      { "job" },
      "0",
      "reprod_sum(@job, @runs_min, @state, @reason, @ended_ms, @search, @difference)",
      "false",
      true },
    { "input_decision",
      { "number" },
      "0",
      "reprod_sum(@number, @siblings, @digest, @reason, @at_ms)",
      "false",
      true },
    { "schedule", { "number" }, "0", SCHEDULE_SUM("@"), "false", true },
    { "schedule_job",
      { "schedule", "due_ms" },
      "0",
      "reprod_sum(@schedule, @due_ms, @job)",
      "false",
      true },
    { "host",
      { "name" },
      "0",
      "reprod_sum(@name, @boot_id, @first_seen_ms, @last_seen_ms)",
      "false",
      true },
    { "host_facts", { "host" }, "0", "reprod_sum(@host, @facts)", "false", true },
    { "change",
      { "number" },
      "0",
      "reprod_sum(@number, @host, @at_ms, @facts, @state, @reports)",
      "false",
      true },
    { "device",
      { "id" },
      "0",
      "reprod_sum(@id, @host, @backend, @model, @attributes, @first_seen_ms,"
      " @last_seen_ms)",
      "false",
      true },
    { "device_state",
      { "device", "since" },
      "0",
      "reprod_sum(@device, @since, @state)",
      "false",
      true },
    { "screening",
      { "number" },
      "0",
      "reprod_sum(@number, @device, @host, @facts, @fingerprint, @reason, @words,"
      " @at_ms, @planned_ms, @outcome, @cause, @counts, @ended_ms)",
      "false",
      true },
    { "screening_job",
      { "screening", "job" },
      "0",
      "reprod_sum(@screening, @job)",
      "false",
      true },
    { "peer",
      { "name" },
      "0",
      "reprod_sum(@name, @service, @reprod, @cursor, @taken, @known, @folded, @of_peers,"
      " @pulled_ms, @caught_up_ms, @waits_for)",
      "false",
      true },
    { "peer_job", { "job" }, "0", "reprod_sum(@job, @origin)", "false", true },
    { "peer_origin",
      { "number" },
      "0",
      "reprod_sum(@number, @peer, @service, @reprod, @first_ms)",
      "false",
      true },
    { "peer_refusal",
      { "peer", "reason" },
      "0",
      "reprod_sum(@peer, @reason, @runs, @run, @words, @at_ms)",
      "false",
      true },
    { "quarantine",
      { "cell", "run" },
      "0",
      "reprod_sum(@cell, @run, @reason, @found_ms, @accepted_ms)",
      "false",
      true },
    { "accepted_loss",
      { "number" },
      "0",
      "reprod_sum(@number, @at_ms, @what)",
      "false",
      true },
};

static void put(struct buf *sql, const char *text, const char *before_column)
{
    for (; *text; text++) {
        if (*text == '@') {
            buf_puts(sql, before_column);
        } else {
            buf_putc(sql, *text);
        }
    }
}

/* "BEFOREid, BEFOREseq" */
static void put_keys(struct buf *sql, const struct summed *t, const char *before)
{
    for (int i = 0; i < KEYS_MAX && t->keys[i]; i++) {
        buf_printf(sql, "%s%s%s", i ? ", " : "", before, t->keys[i]);
    }
}

static enum err_code execute(struct tx *tx, struct buf *sql, struct err *err)
{
    int rc = sqlite3_exec(tx->db, sql->data, NULL, NULL, NULL);

    buf_release(sql);
    return rc == SQLITE_OK ? ERR_OK : tx_error(tx->db, rc, err);
}

static void put_where(struct buf *sql, const struct summed *t)
{
    buf_printf(sql, " WHERE (");
    put_keys(sql, t, "");
    buf_printf(sql, ") = (");
    put_keys(sql, t, "NEW.");
    buf_printf(sql, "); END;");
}

/* What is damaged before keeps its sum, which is that of something else. */
static enum err_code watch(struct tx *tx, const struct summed *t, struct err *err)
{
    struct buf sql = BUF_INIT;
    struct buf list = BUF_INIT;
    const char *columns;

    put(&list, t->sum, "");
    columns = list.data + strlen("reprod_sum(");
    buf_printf(&sql,
               "CREATE TEMP TRIGGER sum_new_%s AFTER INSERT ON main.%s"
               " BEGIN UPDATE %s SET sum = ",
               t->table, t->table, t->table);
    put(&sql, t->sum, "NEW.");
    put_where(&sql, t);
    buf_printf(&sql, "CREATE TEMP TRIGGER sum_%s AFTER UPDATE OF %.*s ON main.%s WHEN ",
               t->table, (int)strlen(columns) - 1, columns, t->table);
    put(&sql, t->sum, "NEW.");
    buf_printf(&sql, " <> ");
    put(&sql, t->sum, "OLD.");
    buf_printf(&sql, " AND OLD.sum IS ");
    put(&sql, t->sum, "OLD.");
    buf_printf(&sql, " BEGIN UPDATE %s SET sum = ", t->table);
    put(&sql, t->sum, "NEW.");
    put_where(&sql, t);
    buf_release(&list);
    return execute(tx, &sql, err);
}

enum err_code checksums_watch(struct tx *tx, struct err *err)
{
    for (int i = 0; i < COUNT_OF(tables); i++) {
        if (tables[i].watched && watch(tx, &tables[i], err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

/* Looking through them. */

enum { SLICE_ROWS = 2000 };

struct walk {
    struct tx *tx;
    const struct summed *table;
    sqlite3_value *last[KEYS_MAX]; /* key of the last row so far; NULL: none */
    void (*damaged)(void *arg, const char *table, const char *key, int64_t cell);
    void *arg;
    int64_t rows;
};

static int key_count(const struct summed *t)
{
    int count = 0;

    while (count < KEYS_MAX && t->keys[count]) {
        count++;
    }
    return count;
}

static void put_slice(struct buf *sql, const struct walk *w)
{
    const struct summed *t = w->table;

    buf_printf(sql, "SELECT ");
    put_keys(sql, t, "r.");
    buf_printf(sql, ", ifnull(%s, 0), %s OR r.sum IS ", t->cell, t->unless);
    put(sql, t->sum, "r.");
    buf_printf(sql, " FROM %s r", t->table);
    if (w->last[0]) {
        buf_printf(sql, " WHERE (");
        put_keys(sql, t, "r.");
        buf_printf(sql, ") > (?%s)",
                   key_count(t) == 1   ? ""
                   : key_count(t) == 2 ? ", ?"
                                       : ", ?, ?");
    }
    buf_printf(sql, " ORDER BY ");
    put_keys(sql, t, "r.");
    buf_printf(sql, " LIMIT %d", SLICE_ROWS);
}

static void tell(const struct walk *w, sqlite3_stmt *statement, int keys)
{
    struct buf key = BUF_INIT;

    for (int i = 0; i < keys; i++) {
        const char *part = (const char *)sqlite3_column_text(statement, i);

        buf_printf(&key, "%s%s", i ? "/" : "", part ? part : "");
    }
    w->damaged(w->arg, w->table->table, key.data, sqlite3_column_int64(statement, keys));
    buf_release(&key);
}

static void remember(struct walk *w, sqlite3_stmt *statement, int keys)
{
    for (int i = 0; i < keys; i++) {
        sqlite3_value_free(w->last[i]);
        w->last[i] = sqlite3_value_dup(sqlite3_column_value(statement, i));
    }
}

/* The rows of one slice: fewer than SLICE_ROWS end the table. */
static enum err_code walk_slice(struct walk *w, int *ret_rows, struct err *err)
{
    int keys = key_count(w->table);
    struct buf sql = BUF_INIT;
    sqlite3_stmt *statement = NULL;
    enum err_code code = ERR_OK;
    int rc;

    put_slice(&sql, w);
    *ret_rows = 0;
    rc = sqlite3_prepare_v2(w->tx->db, sql.data, -1, &statement, NULL);
    for (int i = 0; i < keys && rc == SQLITE_OK && w->last[0]; i++) {
        rc = sqlite3_bind_value(statement, i + 1, w->last[i]);
    }
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(statement);
        if (rc == SQLITE_ROW) {
            ++*ret_rows;
            if (!sqlite3_column_int(statement, keys + 1)) {
                tell(w, statement, keys);
            }
            remember(w, statement, keys);
        }
    }
    if (rc != SQLITE_DONE) {
        code = tx_error(w->tx->db, rc, err);
    }
    sqlite3_finalize(statement);
    buf_release(&sql);
    return code;
}

static enum err_code walk_table(struct walk *w, struct err *err)
{
    enum err_code code;
    int rows;

    do {
        code = walk_slice(w, &rows, err);
        w->rows += rows;
    } while (code == ERR_OK && rows == SLICE_ROWS);
    for (int i = 0; i < KEYS_MAX; i++) {
        sqlite3_value_free(w->last[i]);
        w->last[i] = NULL;
    }
    return code;
}

enum err_code checksums_check(struct tx *tx,
                              void (*damaged)(void *arg, const char *table,
                                              const char *key, int64_t cell),
                              void *arg, int64_t *ret_rows, struct err *err)
{
    struct walk w = { .tx = tx, .damaged = damaged, .arg = arg };

    for (int i = 0; i < COUNT_OF(tables); i++) {
        w.table = &tables[i];
        if (walk_table(&w, err) != ERR_OK) {
            return err->code;
        }
    }
    *ret_rows = w.rows;
    return ERR_OK;
}

static bool is_evidence(const struct summed *t)
{
    return strcmp(t->table, "run") == 0 || strcmp(t->table, "cell") == 0;
}

enum err_code checksums_accept(struct tx *tx,
                               void (*accepted)(void *arg, const char *table,
                                                const char *key, int64_t cell),
                               void *arg, struct err *err)
{
    struct walk w = { .tx = tx, .damaged = accepted, .arg = arg };

    for (int i = 0; i < COUNT_OF(tables); i++) {
        struct buf sql = BUF_INIT;

        w.table = &tables[i];
        if (is_evidence(w.table)) {
            continue;
        }
        if (walk_table(&w, err) != ERR_OK) {
            return err->code;
        }
        buf_printf(&sql, "UPDATE %s SET sum = ", w.table->table);
        put(&sql, w.table->sum, "");
        buf_printf(&sql, " WHERE sum IS NOT ");
        put(&sql, w.table->sum, "");
        if (execute(tx, &sql, err) != ERR_OK) {
            return err->code;
        }
    }
    return tx_run(tx, err,
                  "UPDATE run SET sum = " RUN_SUM
                  " WHERE cell IS NULL"
                  " AND outcome IS NOT NULL AND sum IS NOT " RUN_SUM);
}

/* The schema is a row, too, of a table that has no sum. */

static enum err_code compare_schema(struct tx *expected, struct tx *tx,
                                    void (*differs)(void *arg, const char *line),
                                    void *arg, struct err *err)
{
    struct query q;
    enum err_code code = ERR_OK;

    query_begin(&q, expected,
                "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL");
    while (code == ERR_OK && query_step(&q)) {
        const char *type = query_borrow_text(&q);
        const char *name = query_borrow_text(&q);
        int64_t same = 0;

        code = tx_fetch_int(tx, &same, err,
                            "SELECT count(*) FROM sqlite_schema WHERE type = ?"
                            " AND name = ? AND sql = ?",
                            type, name, query_borrow_text(&q));
        if (code == ERR_OK && !same) {
            char line[160];

            snprintf(line, sizeof line, "schema: %s %s is not what reprod makes", type,
                     name);
            differs(arg, line);
        }
    }
    return query_close(&q, code, err);
}

enum err_code checksums_check_schema(struct tx *tx,
                                     void (*differs)(void *arg, const char *line),
                                     void *arg, struct err *err)
{
    sqlite3 *db = NULL;
    struct tx *expected;
    enum err_code code;
    int rc = sqlite3_open(":memory:", &db);

    if (rc != SQLITE_OK) {
        sqlite3_close(db);
        return tx_error(NULL, rc, err);
    }
    expected = tx_new(db);
    code = migrate_latest(db, err);
    if (code == ERR_OK) {
        code = compare_schema(expected, tx, differs, arg, err);
    }
    tx_free(expected);
    return code;
}
