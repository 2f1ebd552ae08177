#include "db/integrity/totals.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/buf.h"
#include "daemon/base/mem.h"
#include "db/tx.h"

/* The tables that have a total, and what stands for a row: its sum, which another trigger
 * often sets; its number where each run changes it (cells); or, without a sum of its own,
 * all that is in it.  Migrations make the rows of table_total, and this list says which
 * there must be.  In `sum`, @ stands before each column. */
static const struct summed {
    const char *table, *columns, *sum;
} watched[] = {
#define BY_SUM(table)                                                                    \
    {                                                                                    \
        table, "sum", "@sum"                                                             \
    }
    BY_SUM("accepted_loss"),
    BY_SUM("case_key"),
    { "cell", "id", "@id" },
    BY_SUM("cell_history"),
    BY_SUM("change"),
    BY_SUM("device"),
    BY_SUM("device_state"),
    BY_SUM("environment"),
    { "event", "id, at_ms, kind, data", "reprod_sum(@id, @at_ms, @kind, @data)" },
    BY_SUM("host"),
    BY_SUM("host_facts"),
    BY_SUM("input_decision"),
    BY_SUM("job"),
    BY_SUM("job_item"),
    BY_SUM("library_list"),
    BY_SUM("localisation"),
    { "lost_commits", "last_number, witnessed, found_ms, accepted_ms",
      "reprod_sum(@last_number, @witnessed, @found_ms, @accepted_ms)" },
    BY_SUM("peer"),
    BY_SUM("peer_job"),
    BY_SUM("peer_origin"),
    BY_SUM("peer_refusal"),
    BY_SUM("quarantine"),
    BY_SUM("run_log"),
    BY_SUM("run_summary"),
    BY_SUM("run_telemetry"),
    BY_SUM("run_tensor"),
    BY_SUM("run_trace"),
    BY_SUM("schedule"),
    BY_SUM("schedule_job"),
    BY_SUM("screening"),
    BY_SUM("screening_job"),
    BY_SUM("tensor_blob"),
    { "webhook", "number", "@number" },
    { "webhook_cursor", "number", "@number" },
    { "webhook_delivery", "number", "@number" },
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

static enum err_code execute(sqlite3 *db, struct buf *sql, struct err *err)
{
    int rc = sql->length ? sqlite3_exec(db, sql->data, NULL, NULL, NULL) : SQLITE_OK;

    buf_release(sql);
    return rc == SQLITE_OK ? ERR_OK : tx_error(db, rc, err);
}

/* As the list has it; a table of another version has a sum. */
static struct summed find(const char *table)
{
    for (int i = 0; i < COUNT_OF(watched); i++) {
        if (strcmp(watched[i].table, table) == 0) {
            return watched[i];
        }
    }
    return (struct summed)BY_SUM(table);
}

static void put(struct buf *sql, const char *sum, const char *before_column)
{
    for (; *sum; sum++) {
        if (*sum == '@') {
            buf_puts(sql, before_column);
        } else {
            buf_putc(sql, *sum);
        }
    }
}

/* "ACTION … BEGIN UPDATE … ROWS, sums = …; END;": the sum of the row BEFORE, or of none,
 * leaves the total, and that of the row AFTER enters it. */
static void put_trigger(struct buf *sql, const struct summed *s, const char *name,
                        const char *action, const char *rows, const char *before,
                        const char *after)
{
    buf_printf(sql,
               "CREATE TEMP TRIGGER total_%s_%s AFTER %s ON main.%s BEGIN"
               " UPDATE table_total SET %ssums = reprod_xor(",
               name, s->table, action, s->table, rows);
    if (before && after) {
        buf_puts(sql, "reprod_xor(sums, ");
        put(sql, s->sum, before);
        buf_puts(sql, "), ");
    } else {
        buf_puts(sql, "sums, ");
    }
    put(sql, s->sum, after ? after : before);
    buf_printf(sql, ") WHERE name = '%s'; END;", s->table);
}

/* The sum of a new row is often set by another trigger, which the second sees too. */
static void put_triggers(struct buf *sql, const struct summed *s)
{
    char *update = xasprintf("UPDATE OF %s", s->columns);

    put_trigger(sql, s, "new", "INSERT", "rows = rows + 1, ", NULL, "NEW.");
    put_trigger(sql, s, "sum", update, "", "OLD.", "NEW.");
    put_trigger(sql, s, "old", "DELETE", "rows = rows - 1, ", "OLD.", NULL);
    free(update);
}

enum err_code totals_watch(struct tx *tx, struct err *err)
{
    struct buf sql = BUF_INIT;

    for (int i = 0; i < COUNT_OF(watched); i++) {
        put_triggers(&sql, &watched[i]);
    }
    return execute(tx->db, &sql, err);
}

enum err_code totals_watch_one(struct tx *tx, const char *table, struct err *err)
{
    struct tables tables = { .count = 0 };
    struct summed summed = find(table);
    struct buf sql = BUF_INIT;
    bool has;
    enum err_code code = has_totals(tx->db, &has, err);

    if (code == ERR_OK && has) {
        code = list_tables(tx->db, &tables, err);
    }
    for (int i = 0; i < tables.count && code == ERR_OK; i++) {
        if (strcmp(tables.names[i], table) == 0) {
            put_triggers(&sql, &summed);
        }
    }
    if (code != ERR_OK) {
        return code;
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

    buf_puts(&sql,
             "SELECT n, ifnull(t.rows, 0), n IS t.rows AND x IS t.sums FROM"
             " (SELECT count(*) AS n, reprod_xor(");
    put(&sql, find(table).sum, "");
    buf_printf(&sql, ") AS x FROM \"%s\") LEFT JOIN table_total t ON t.name = ?", table);
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
               "INSERT OR REPLACE INTO table_total SELECT '%s', count(*), reprod_xor(",
               table);
    put(sql, find(table).sum, "");
    buf_printf(sql, ") FROM \"%s\";", table);
}

enum err_code totals_accept(struct tx *tx, struct err *err)
{
    struct buf sql = BUF_INIT;

    for (int i = 0; i < COUNT_OF(watched); i++) {
        put_renewal(&sql, watched[i].table);
    }
    return execute(tx->db, &sql, err);
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
