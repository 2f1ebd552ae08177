#include "db/integrity/references.h"

#include <stdio.h>

#include <sqlite3.h>

#include "daemon/base/buf.h"
#include "db/tx.h"

enum { NAME_SIZE = 64, LINE_SIZE = 200 };

/* Column I of a key: `from` of the child is `to` of the parent. */
static void put_column(struct buf keys[4], int i, const char *from, const char *to)
{
    const char *between = i ? " AND " : "";

    buf_printf(&keys[0], "%sc.\"%s\"", i ? " || '/' || " : "", from);
    buf_printf(&keys[1], "%sc.\"%s\" IS NOT NULL", between, from);
    buf_printf(&keys[2], "%sp.\"%s\" = c.\"%s\"", between, to, from);
    buf_printf(&keys[3], "%sc.\"%s\"", i ? ", " : "", from);
}

/* One reference of CHILD, whose columns SQLite lists: RET_SQL gives each key that no row
 * of RET_PARENT has, and how many rows have it. */
static enum err_code write_query(struct tx *tx, const char *child, int64_t reference,
                                 char ret_parent[NAME_SIZE], struct buf *ret_sql,
                                 struct err *err)
{
    struct buf keys[4] = { BUF_INIT, BUF_INIT, BUF_INIT, BUF_INIT };
    struct query q;
    enum err_code code;
    int count = 0;

    query_begin(&q, tx,
                "SELECT \"table\", \"from\", \"to\" FROM pragma_foreign_key_list(?)"
                " WHERE id = ? ORDER BY seq",
                child, reference);
    while (query_step(&q)) {
        char from[NAME_SIZE], to[NAME_SIZE];

        query_take_text(&q, ret_parent, NAME_SIZE);
        query_take_text(&q, from, NAME_SIZE);
        query_take_text(&q, to, NAME_SIZE);
        put_column(keys, count++, from, to);
    }
    code = query_end(&q, err);
    if (code == ERR_OK && count) {
        buf_printf(ret_sql,
                   "SELECT %s, count(*) FROM \"%s\" c WHERE %s AND NOT EXISTS (SELECT 1"
                   " FROM \"%s\" p WHERE %s) GROUP BY %s",
                   keys[0].data, child, keys[1].data, ret_parent, keys[2].data,
                   keys[3].data);
    }
    for (int i = 0; i < 4; i++) {
        buf_release(&keys[i]);
    }
    return code;
}

static enum err_code tell_missing(struct tx *tx, const char *child, int64_t reference,
                                  void (*report)(void *arg, const char *line,
                                                 int64_t rows),
                                  void *arg, struct err *err)
{
    char parent[NAME_SIZE] = "";
    struct buf sql = BUF_INIT;
    sqlite3_stmt *statement = NULL;
    enum err_code code = write_query(tx, child, reference, parent, &sql, err);
    int rc = SQLITE_DONE;

    if (code == ERR_OK && sql.length) {
        rc = sqlite3_prepare_v2(tx->db, sql.data, -1, &statement, NULL);
    }
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(statement);
        if (rc == SQLITE_ROW) {
            char line[LINE_SIZE];

            snprintf(line, sizeof line,
                     "table %s: rows refer to %s %.80s, which is missing", child, parent,
                     (const char *)sqlite3_column_text(statement, 0));
            report(arg, line, sqlite3_column_int64(statement, 1));
        }
    }
    if (code == ERR_OK && rc != SQLITE_DONE) {
        code = tx_error(tx->db, rc, err);
    }
    sqlite3_finalize(statement);
    buf_release(&sql);
    return code;
}

/* SQLite's own check is the fastest where nothing is missing. */
enum err_code references_check(struct tx *tx, const char *child,
                               void (*report)(void *arg, const char *line, int64_t rows),
                               void *arg, struct err *err)
{
    enum { REFERENCES_MAX = 16 };
    int64_t broken[REFERENCES_MAX];
    int count = 0;
    enum err_code code;
    struct query q;

    query_begin(&q, tx, "SELECT DISTINCT fkid FROM pragma_foreign_key_check(?)", child);
    while (query_step(&q) && count < REFERENCES_MAX) {
        broken[count++] = query_take_int(&q);
    }
    code = query_end(&q, err);
    for (int i = 0; i < count && code == ERR_OK; i++) {
        code = tell_missing(tx, child, broken[i], report, arg, err);
    }
    return code;
}
