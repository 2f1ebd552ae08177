/* A transaction as db/ sees it: one connection with its prepared statements.
 *
 * SQL is written as string literals beside the code that uses it.  A statement is
 * prepared once per connection, found again by the address of its literal, and reset
 * after use. Values are bound in order of the question marks and taken in order of the
 * columns:
 *
 *     struct query q;
 *     query_begin(&q, tx, "SELECT name, cells FROM t WHERE id = ?");
 *     query_bind_int(&q, id);
 *     while (query_step(&q)) {
 *         query_take_text(&q, name, sizeof name);
 *         cells = query_take_int(&q);
 *     }
 *     return query_end(&q, err);
 *
 * Errors are sticky: after one, query_step returns false and query_end reports it. */
#ifndef DB_TX_H
#define DB_TX_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/err.h"

struct tx {
    sqlite3 *db;
    struct tx_statement *statements; /* hash table, keyed by the literal's address */
    int64_t deadline_ns;             /* monotonic; statements are interrupted; 0: none */
};

struct query {
    struct tx *tx;
    sqlite3_stmt *statement;
    int rc;         /* SQLITE_OK, SQLITE_ROW, SQLITE_DONE, or the error */
    int bound;      /* parameters bound so far */
    int taken;      /* columns of the row taken so far */
    bool transient; /* prepared for this use alone: the cached one was busy */
};

/* Takes ownership of DB; freed, and DB closed, with tx_free (NULL is fine). */
struct tx *tx_new(sqlite3 *db);
void tx_free(struct tx *tx);

/* Fills ERR from what SQLite says about RC on this connection; returns the code.
 * SQLITE_INTERRUPT is ERR_TIMEOUT, an existing key ERR_CONFLICT, any other broken
 * constraint ERR_INVALID. */
enum err_code tx_error(sqlite3 *db, int rc, struct err *err);

/* Runs SQL without parameters or result, through the cache. */
enum err_code tx_execute(struct tx *tx, const char *sql, struct err *err);

/* SQL: a literal, or text that lives as long as the connection. */
void query_begin(struct query *q, struct tx *tx, const char *sql);

/* Borrowed: TEXT and DATA must be valid until query_end.  NULL TEXT binds NULL. */
void query_bind_text(struct query *q, const char *text);
void query_bind_text_or_null(struct query *q, const char *text); /* "" binds NULL too */
void query_bind_int(struct query *q, int64_t value);
void query_bind_int_or_null(struct query *q, int64_t value); /* 0 binds NULL */
void query_bind_blob(struct query *q, const void *data, int64_t length);

/* Whether there is a (next) row. */
bool query_step(struct query *q);

/* Steps to the end, for statements without a result, and ends. */
enum err_code query_run(struct query *q, struct err *err);

/* Of the current row.  NULL is taken as 0 and "". */
int64_t query_take_int(struct query *q);
void query_take_text(struct query *q, char *ret_text, size_t size);
const char *query_borrow_text(struct query *q); /* valid until the next step */
char *query_copy_text(struct query *q);         /* caller frees; NULL for "" */
const void *query_borrow_blob(struct query *q); /* likewise; NULL if empty */
bool query_next_is_null(struct query *q);       /* the next column to be taken */

/* Resets the statement.  Always called, also after an error. */
enum err_code query_end(struct query *q, struct err *err);

/* Ends after CODE, an error of what was done with the rows: it is returned, and ERR kept,
 * unless it is ERR_OK. */
enum err_code query_close(struct query *q, enum err_code code, struct err *err);

/* Takes one number, the first column of the first row, and ends; without a row *ret_value
 * stays as it is. */
enum err_code query_fetch_int(struct query *q, int64_t *ret_value, struct err *err);

#endif
