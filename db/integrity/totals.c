#include "db/integrity/totals.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/buf.h"
#include "db/tx.h"

/* The tables that have a total, and what stands for a row: its sum, or its number where
 * each run changes it (cells) or nothing ever does (events).  Migrations make the rows of
 * table_total, and this list says which there must be. */
static const struct summed {
    const char *table, *column;
} watched[] = {
    { "accepted_loss", "sum" }, { "case_key", "sum" },      { "cell", "id" },
    { "cell_history", "sum" },  { "change", "sum" },        { "device", "sum" },
    { "device_state", "sum" },  { "environment", "sum" },   { "event", "id" },
    { "host", "sum" },          { "host_facts", "sum" },    { "input_decision", "sum" },
    { "job", "sum" },           { "job_item", "sum" },      { "library_list", "sum" },
    { "localisation", "sum" },  { "quarantine", "sum" },    { "run_log", "sum" },
    { "run_summary", "sum" },   { "run_telemetry", "sum" }, { "run_tensor", "sum" },
    { "run_trace", "sum" },     { "schedule", "sum" },      { "schedule_job", "sum" },
    { "screening", "sum" },     { "screening_job", "sum" }, { "tensor_blob", "sum" },
};

enum { TABLES_MAX = 64 };

struct tables {
    char names[TABLES_MAX][64];
    int count;
};

/* Those of a database that may be of another version. */
static enum err_code list_tables(sqlite3 *db, struct tables *ret_tables, struct err *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(db, "SELECT name FROM table_total ORDER BY name", -1,
                                &statement, NULL);

    ret_tables->count = 0;
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(statement);
        if (rc == SQLITE_ROW && ret_tables->count < TABLES_MAX) {
            snprintf(ret_tables->names[ret_tables->count++], sizeof *ret_tables->names,
                     "%s", (const char *)sqlite3_column_text(statement, 0));
        }
    }
    sqlite3_finalize(statement);
    return rc == SQLITE_DONE ? ERR_OK : tx_error(db, rc, err);
}

static enum err_code execute(sqlite3 *db, struct buf *sql, struct err *err)
{
    int rc = sql->length ? sqlite3_exec(db, sql->data, NULL, NULL, NULL) : SQLITE_OK;

    buf_release(sql);
    return rc == SQLITE_OK ? ERR_OK : tx_error(db, rc, err);
}

static const char *column_of(const char *table)
{
    for (int i = 0; i < COUNT_OF(watched); i++) {
        if (strcmp(watched[i].table, table) == 0) {
            return watched[i].column;
        }
    }
    return "sum";
}

/* The sum of a new row is often set by another trigger, which this one sees too. */
static void put_triggers(struct buf *sql, const char *table, const char *column)
{
    buf_printf(sql,
               "CREATE TEMP TRIGGER total_new_%s AFTER INSERT ON main.%s BEGIN"
               " UPDATE table_total SET rows = rows + 1,"
               " sums = reprod_xor(sums, NEW.%s) WHERE name = '%s'; END;",
               table, table, column, table);
    buf_printf(sql,
               "CREATE TEMP TRIGGER total_sum_%s AFTER UPDATE OF %s ON main.%s BEGIN"
               " UPDATE table_total SET"
               " sums = reprod_xor(reprod_xor(sums, OLD.%s), NEW.%s)"
               " WHERE name = '%s'; END;",
               table, column, table, column, column, table);
    buf_printf(sql,
               "CREATE TEMP TRIGGER total_old_%s AFTER DELETE ON main.%s BEGIN"
               " UPDATE table_total SET rows = rows - 1,"
               " sums = reprod_xor(sums, OLD.%s) WHERE name = '%s'; END;",
               table, table, column, table);
}

enum err_code totals_watch(struct tx *tx, struct err *err)
{
    struct buf sql = BUF_INIT;

    for (int i = 0; i < COUNT_OF(watched); i++) {
        put_triggers(&sql, watched[i].table, watched[i].column);
    }
    return execute(tx->db, &sql, err);
}

/* What a table has, and what was stored. */
struct total {
    int64_t rows, stored_rows;
    bool same;
};

static enum err_code compare(sqlite3 *db, const char *table, struct total *ret_total,
                             struct err *err)
{
    struct buf sql = BUF_INIT;
    sqlite3_stmt *statement = NULL;
    int rc;

    buf_printf(&sql,
               "SELECT n, ifnull(t.rows, 0), n IS t.rows AND x IS t.sums FROM"
               " (SELECT count(*) AS n, reprod_xor(%s) AS x FROM \"%s\")"
               " LEFT JOIN table_total t ON t.name = ?",
               column_of(table), table);
    rc = sqlite3_prepare_v2(db, sql.data, -1, &statement, NULL);
    buf_release(&sql);
    if (rc == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
        rc = sqlite3_step(statement);
    }
    *ret_total = (struct total){ .same = true };
    if (rc == SQLITE_ROW) {
        ret_total->rows = sqlite3_column_int64(statement, 0);
        ret_total->stored_rows = sqlite3_column_int64(statement, 1);
        ret_total->same = sqlite3_column_int(statement, 2);
    }
    sqlite3_finalize(statement);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? ERR_OK : tx_error(db, rc, err);
}

enum err_code totals_check(struct tx *tx, void (*report)(void *arg, const char *line),
                           void *arg, int64_t *ret_count, struct err *err)
{
    *ret_count = 0;
    for (int i = 0; i < COUNT_OF(watched); i++) {
        struct total total;
        char line[160];
        int64_t missing;

        if (compare(tx->db, watched[i].table, &total, err) != ERR_OK) {
            return err->code;
        }
        if (total.same) {
            continue;
        }
        missing = total.stored_rows - total.rows;
        snprintf(line, sizeof line,
                 "table %s: its rows are not those that were stored: %" PRId64
                 ", and %" PRId64 " %s there",
                 watched[i].table, total.stored_rows, total.rows,
                 total.rows == 1 ? "is" : "are");
        report(arg, line);
        *ret_count += missing > 0 ? missing : missing < 0 ? -missing : 1;
    }
    return ERR_OK;
}

static void put_renewal(struct buf *sql, const char *table)
{
    buf_printf(sql,
               "INSERT OR REPLACE INTO table_total SELECT '%s', count(*), reprod_xor(%s)"
               " FROM \"%s\";",
               table, column_of(table), table);
}

enum err_code totals_accept(struct tx *tx, struct err *err)
{
    struct buf sql = BUF_INIT;

    for (int i = 0; i < COUNT_OF(watched); i++) {
        put_renewal(&sql, watched[i].table);
    }
    return execute(tx->db, &sql, err);
}

static enum err_code has_totals(sqlite3 *db, bool *ret_has, struct err *err)
{
    sqlite3_stmt *statement = NULL;
    int rc =
        sqlite3_prepare_v2(db, "SELECT 1 FROM sqlite_schema WHERE name = 'table_total'",
                           -1, &statement, NULL);

    if (rc == SQLITE_OK) {
        rc = sqlite3_step(statement);
    }
    *ret_has = rc == SQLITE_ROW;
    sqlite3_finalize(statement);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? ERR_OK : tx_error(db, rc, err);
}

enum err_code totals_hold(sqlite3 *db, char **ret_renew, struct err *err)
{
    struct tables tables = { .count = 0 };
    struct buf sql = BUF_INIT;
    bool has;
    enum err_code code = has_totals(db, &has, err);

    if (code == ERR_OK && has) {
        code = list_tables(db, &tables, err);
    }
    for (int i = 0; i < tables.count && code == ERR_OK; i++) {
        struct total total;

        code = compare(db, tables.names[i], &total, err);
        if (code == ERR_OK && total.same) {
            put_renewal(&sql, tables.names[i]);
        }
    }
    buf_puts(&sql, "");
    *ret_renew = buf_detach(&sql, NULL);
    return code;
}
