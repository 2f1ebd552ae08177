#include "db/tx.h"

#include <stdlib.h>

#include "daemon/base/mem.h"

struct tx_statement {
    const char *sql;
    sqlite3_stmt *statement;
};

enum { STATEMENT_SLOTS = 256 }; /* power of two, more than twice the literals of db/ */

struct tx *tx_new(sqlite3 *db)
{
    struct tx *tx = xcalloc(1, sizeof *tx);

    tx->db = db;
    tx->statements = xcalloc(STATEMENT_SLOTS, sizeof *tx->statements);
    return tx;
}

void tx_free(struct tx *tx)
{
    if (!tx) {
        return;
    }
    for (int i = 0; i < STATEMENT_SLOTS; i++) {
        sqlite3_finalize(tx->statements[i].statement);
    }
    sqlite3_close(tx->db);
    free(tx->statements);
    free(tx->unsettled);
    free(tx->progressed);
    free(tx);
}

static enum err_code constraint_code(int extended)
{
    switch (extended) {
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_ROWID:
        return ERR_CONFLICT;
    default:
        return ERR_INVALID;
    }
}

static enum err_code code_of(int rc, int extended)
{
    switch (rc & 0xff) {
    case SQLITE_CONSTRAINT:
        return constraint_code(extended);
    case SQLITE_INTERRUPT:
        return ERR_TIMEOUT;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return ERR_BUSY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return ERR_CORRUPT;
    case SQLITE_TOOBIG:
        return ERR_TOO_LARGE;
    case SQLITE_IOERR:
    case SQLITE_FULL:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_NOMEM:
        return ERR_IO;
    default:
        return ERR_INTERNAL;
    }
}

enum err_code tx_error(sqlite3 *db, int rc, struct err *err)
{
    int extended = db ? sqlite3_extended_errcode(db) : rc;
    bool same = (extended & 0xff) == (rc & 0xff);

    return err_set(err, code_of(rc, same ? extended : rc), "database: %s",
                   db && same ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
}

enum err_code tx_integrity(const char *line, struct err *err)
{
    const char *code = strstr(line, "unable to get the page. error code=");
    int rc = code ? (int)strtol(strchr(code, '=') + 1, NULL, 10) : SQLITE_CORRUPT;

    return (rc & 0xff) == SQLITE_IOERR || (rc & 0xff) == SQLITE_NOMEM
               ? err_set(err, ERR_IO, "the database cannot be read: %s",
                         sqlite3_errstr(rc))
               : err_set(err, ERR_CORRUPT, "the database is damaged: %s", line);
}

static struct tx_statement *slot_of(struct tx *tx, const char *sql)
{
    size_t hash = (size_t)((uintptr_t)sql * 0x9e3779b97f4a7c15U >> 32);

    for (int i = 0; i < STATEMENT_SLOTS; i++) {
        struct tx_statement *slot = &tx->statements[(hash + (size_t)i) % STATEMENT_SLOTS];

        if (!slot->sql || slot->sql == sql) {
            slot->sql = sql;
            return slot;
        }
    }
    return NULL;
}

static void prepare(struct query *q, const char *sql)
{
    struct tx_statement *slot = slot_of(q->tx, sql);

    if (slot && slot->statement && !sqlite3_stmt_busy(slot->statement)) {
        q->statement = slot->statement;
        return;
    }
    q->rc = sqlite3_prepare_v3(q->tx->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                               &q->statement, NULL);
    q->transient = !slot || slot->statement;
    if (!q->transient) {
        slot->statement = q->statement;
    }
}

void query_begin_with(struct query *q, struct tx *tx, const struct tx_value *sql_values)
{
    *q = (struct query){ .tx = tx, .rc = SQLITE_OK };
    prepare(q, sql_values[0].data);
    query_bind_all(q, sql_values + 1);
}

struct tx_value tx_blob(const void *data, int64_t length)
{
    return (struct tx_value){ .kind = TX_BLOB, .data = data, .number = length };
}

struct tx_value tx_unless_empty(struct tx_value value)
{
    bool empty = value.kind == TX_TEXT ? *(const char *)value.data == '\0'
                                       : value.kind == TX_INT && value.number == 0;

    if (empty) {
        value.kind = TX_NULL;
    }
    return value;
}

static int bind(sqlite3_stmt *statement, int at, const struct tx_value *value)
{
    switch (value->kind) {
    case TX_INT:
        return sqlite3_bind_int64(statement, at, value->number);
    case TX_TEXT:
        return sqlite3_bind_text(statement, at, value->data, -1, SQLITE_STATIC);
    case TX_BLOB:
        return sqlite3_bind_blob64(statement, at, value->data,
                                   (sqlite3_uint64)value->number, SQLITE_STATIC);
    default:
        return sqlite3_bind_null(statement, at);
    }
}

void query_bind_all(struct query *q, const struct tx_value *values)
{
    for (; values->kind != TX_END; values++) {
        int rc = bind(q->statement, ++q->bound, values);

        if (q->rc == SQLITE_OK) {
            q->rc = rc;
        }
    }
}

bool query_step(struct query *q)
{
    if (q->rc != SQLITE_OK && q->rc != SQLITE_ROW) {
        return false;
    }
    q->taken = 0;
    q->rc = sqlite3_step(q->statement);
    return q->rc == SQLITE_ROW;
}

enum err_code query_run(struct query *q, struct err *err)
{
    while (query_step(q)) {
    }
    return query_end(q, err);
}

int64_t query_take_int(struct query *q)
{
    return sqlite3_column_int64(q->statement, q->taken++);
}

void query_take_all(struct query *q, const struct tx_target *targets)
{
    for (; targets->kind != TX_LAST; targets++) {
        switch (targets->kind) {
        case TX_TO_TEXT:
            query_take_text(q, targets->to, targets->size);
            break;
        case TX_TO_INT:
            *(int *)targets->to = (int)query_take_int(q);
            break;
        case TX_TO_INT64:
            *(int64_t *)targets->to = query_take_int(q);
            break;
        case TX_BORROW:
            *(const char **)targets->to = query_borrow_text(q);
            break;
        default:
            *(bool *)targets->to = query_take_int(q);
        }
    }
}

const char *query_borrow_text(struct query *q)
{
    const unsigned char *text = sqlite3_column_text(q->statement, q->taken++);

    return text ? (const char *)text : "";
}

void query_take_text(struct query *q, char *ret_text, size_t size)
{
    copy_text(ret_text, size, query_borrow_text(q));
}

char *query_copy_text(struct query *q)
{
    const char *text = query_borrow_text(q);

    return *text ? xstrdup(text) : NULL;
}

const void *query_borrow_blob(struct query *q)
{
    return sqlite3_column_blob(q->statement, q->taken++);
}

bool query_next_is_null(struct query *q)
{
    return sqlite3_column_type(q->statement, q->taken) == SQLITE_NULL;
}

enum err_code query_end(struct query *q, struct err *err)
{
    bool failed = q->rc != SQLITE_OK && q->rc != SQLITE_ROW && q->rc != SQLITE_DONE;
    enum err_code code = failed ? tx_error(q->tx->db, q->rc, err) : ERR_OK;

    if (q->statement) {
        sqlite3_reset(q->statement);
        sqlite3_clear_bindings(q->statement);
    }
    if (q->transient) {
        sqlite3_finalize(q->statement);
    }
    q->statement = NULL;
    return code;
}

enum err_code query_close(struct query *q, enum err_code code, struct err *err)
{
    struct err ignored;
    enum err_code ended = query_end(q, code == ERR_OK ? err : &ignored);

    return code == ERR_OK ? ended : code;
}

enum err_code tx_run_with(struct tx *tx, struct err *err,
                          const struct tx_value *sql_values)
{
    struct query q;

    query_begin_with(&q, tx, sql_values);
    return query_run(&q, err);
}

enum err_code tx_fetch_with(struct tx *tx, const struct tx_target *targets,
                            struct err *err, const struct tx_value *sql_values)
{
    struct query q;

    query_begin_with(&q, tx, sql_values);
    if (query_step(&q)) {
        query_take_all(&q, targets);
    }
    return query_run(&q, err);
}
