/* A transaction as db/ sees it: one connection with its prepared statements.
 *
 * SQL is written as string literals next to the code that uses it.  A statement is
 * prepared once per connection, found again by the address of its literal, and reset
 * after use. Values are bound in order of the question marks and taken in order of the
 * columns:
 *
 *     struct query q;
 *     query_begin(&q, tx, "SELECT name, cells FROM t WHERE id = ?", id);
 *     while (query_step(&q)) {
 *         query_take(&q, name, &cells);
 *     }
 *     return query_end(&q, err);
 *
 * Errors are sticky: after one, query_step returns false and query_end reports it.
 *
 * A value to bind is a signed integer, a bool or an enum; a text, where a NULL pointer
 * binds NULL; or what or_null and tx_blob return.  Nothing else compiles.  Texts and
 * blobs are borrowed until query_end. */
#ifndef DB_TX_H
#define DB_TX_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/err.h"

enum { TX_SEEN_OPEN = 64 };

struct unsettled;
struct progressed;

struct tx {
    sqlite3 *db;
    struct tx_statement *statements; /* hash table, keyed by the literal's address */
    int64_t deadline_ns;             /* monotonic; statements are interrupted; 0: none */
    bool settles;                    /* with what follows: db/dissent/unsettled.h */
    struct unsettled *unsettled;
    int unsettled_count;
    struct progressed *progressed; /* db/jobs_progress.h */
    int progressed_count;
    int seen_open[TX_SEEN_OPEN]; /* hints of db/dissent/more_runs.c */
};

struct query {
    struct tx *tx;
    sqlite3_stmt *statement;
    int rc;         /* SQLITE_OK, SQLITE_ROW, SQLITE_DONE, or the error */
    int bound;      /* parameters bound so far */
    int taken;      /* columns of the row taken so far */
    bool transient; /* prepared for this use alone: the cached one was busy */
};

struct tx_value {
    enum { TX_END, TX_NULL, TX_INT, TX_TEXT, TX_BLOB } kind;
    const void *data; /* of a text or a blob */
    int64_t number;   /* of an integer; of a blob: its length */
};

/* Where a column goes. */
struct tx_target {
    enum { TX_LAST, TX_TO_TEXT, TX_TO_INT, TX_TO_INT64, TX_TO_BOOL, TX_BORROW } kind;
    void *to;
    size_t size; /* of a text */
};

/* Takes ownership of DB; freed, and DB closed, with tx_free (NULL is fine). */
struct tx *tx_new(sqlite3 *db);
void tx_free(struct tx *tx);

/* Fills ERR from what SQLite says about RC on this connection; returns the code.
 * SQLITE_INTERRUPT is ERR_TIMEOUT, an existing key ERR_CONFLICT, any other broken
 * constraint ERR_INVALID. */
enum err_code tx_error(sqlite3 *db, int rc, struct err *err);

/* Fills ERR from a LINE of PRAGMA integrity_check that is not "ok": ERR_CORRUPT, or
 * ERR_IO where SQLite lists a page that it could not read as if it were damaged. */
enum err_code tx_integrity(const char *line, struct err *err);

/* or_null(value): NULL for 0 and for "", else VALUE. */
struct tx_value tx_unless_empty(struct tx_value value);
struct tx_value tx_blob(const void *data, int64_t length);

/* query_begin(q, tx, sql, values...): SQL is a literal, or text that lives as long as the
 * connection. */
#define query_begin(q, tx, ...) query_begin_with(q, tx, TX_VALUES(__VA_ARGS__))
void query_begin_with(struct query *q, struct tx *tx, const struct tx_value *sql_values);

/* query_bind(q, values...): for the question marks after those bound so far. */
#define query_bind(q, ...) query_bind_all(q, TX_VALUES(__VA_ARGS__))
void query_bind_all(struct query *q, const struct tx_value *values);

/* tx_run(tx, err, sql, values...): runs a statement without result. */
#define tx_run(tx, err, ...) tx_run_with(tx, err, TX_VALUES(__VA_ARGS__))
enum err_code tx_run_with(struct tx *tx, struct err *err,
                          const struct tx_value *sql_values);

/* tx_fetch(tx, TX_TARGETS(targets...), err, sql, values...): takes the first row, as
 * query_take does, and runs the statement to its end; without a row the targets stay as
 * they are.  tx_fetch_int(tx, target, err, sql, values...): for one column. */
#define tx_fetch(tx, targets, err, ...)                                                  \
    tx_fetch_with(tx, targets, err, TX_VALUES(__VA_ARGS__))
#define tx_fetch_int(tx, target, err, ...)                                               \
    tx_fetch(tx, TX_TARGETS(target), err, __VA_ARGS__)
enum err_code tx_fetch_with(struct tx *tx, const struct tx_target *targets,
                            struct err *err, const struct tx_value *sql_values);

/* Whether there is a (next) row. */
bool query_step(struct query *q);

/* Steps to the end and ends. */
enum err_code query_run(struct query *q, struct err *err);

/* query_take(q, targets...): columns of the current row.  A target is an array of char or
 * a pointer to int64_t, int or bool, or to a const char *, which borrows the text until
 * the next step; nothing else compiles.  Here and below NULL is taken as 0 and "". */
#define query_take(q, ...) query_take_all(q, TX_TARGETS(__VA_ARGS__))
void query_take_all(struct query *q, const struct tx_target *targets);

/* The next column of the current row. */
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

/* Arrays of struct tx_value and of struct tx_target, with one more that ends them. */
#ifdef __cppcheck__ /* which cannot parse _Generic in an initialiser (tests/lint.mk) */
#define TX_VALUES(...)  tx_checked(__VA_ARGS__)
#define TX_TARGETS(...) tx_checked(__VA_ARGS__)
#define or_null(value)  (value)
#else
#define or_null(value) tx_unless_empty(TX_VALUE(value))
#define TX_VALUES(...)                                                                   \
    ((const struct tx_value[]){ TX_EACH(TX_VALUE, __VA_ARGS__), { .kind = TX_END } })
#define TX_TARGETS(...)                                                                  \
    ((const struct tx_target[]){ TX_EACH(TX_TARGET, __VA_ARGS__), { .kind = TX_LAST } })
#endif

#define TX_VALUE(value)                                                                  \
    _Generic((value), bool : tx_int, int : tx_int, unsigned : tx_int, int64_t : tx_int,  \
             char * : tx_text, const char * : tx_text, struct tx_value : tx_same)(value)
#define TX_TARGET(target)                                                                \
    (struct tx_target)                                                                   \
    {                                                                                    \
        TX_KIND(target), target, TX_SIZE(target)                                         \
    }
#define TX_KIND(target)                                                                  \
    _Generic((target), char * : TX_TO_TEXT, int * : TX_TO_INT, int64_t * : TX_TO_INT64,  \
             bool * : TX_TO_BOOL, const char ** : TX_BORROW)

/* Does not compile for a char pointer, whose array's size is not known. */
#define TX_SIZE(target)                                                                  \
    (sizeof(target) * /* NOLINT(bugprone-sizeof-expression) */                           \
     sizeof(char[1 - 2 * TX_IS_POINTER(target)]))
#define TX_IS_POINTER(target)                                                            \
    _Generic((target), char * : sizeof(target) == sizeof(char *), default : 0)

#define TX_EACH(f, ...)                                                                  \
    TX_PICK(__VA_ARGS__, TX_15, TX_14, TX_13, TX_12, TX_11, TX_10, TX_9, TX_8, TX_7,     \
            TX_6, TX_5, TX_4, TX_3, TX_2, TX_1, 0)                                       \
    (f, __VA_ARGS__)
#define TX_PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, name, ...) name
#define TX_1(f, a)                                                      f(a)
#define TX_2(f, a, ...)                                                 f(a), TX_1(f, __VA_ARGS__)
#define TX_3(f, a, ...)                                                 f(a), TX_2(f, __VA_ARGS__)
#define TX_4(f, a, ...)                                                 f(a), TX_3(f, __VA_ARGS__)
#define TX_5(f, a, ...)                                                 f(a), TX_4(f, __VA_ARGS__)
#define TX_6(f, a, ...)                                                 f(a), TX_5(f, __VA_ARGS__)
#define TX_7(f, a, ...)                                                 f(a), TX_6(f, __VA_ARGS__)
#define TX_8(f, a, ...)                                                 f(a), TX_7(f, __VA_ARGS__)
#define TX_9(f, a, ...)                                                 f(a), TX_8(f, __VA_ARGS__)
#define TX_10(f, a, ...)                                                f(a), TX_9(f, __VA_ARGS__)
#define TX_11(f, a, ...)                                                f(a), TX_10(f, __VA_ARGS__)
#define TX_12(f, a, ...)                                                f(a), TX_11(f, __VA_ARGS__)
#define TX_13(f, a, ...)                                                f(a), TX_12(f, __VA_ARGS__)
#define TX_14(f, a, ...)                                                f(a), TX_13(f, __VA_ARGS__)
#define TX_15(f, a, ...)                                                f(a), TX_14(f, __VA_ARGS__)

static inline struct tx_value tx_int(int64_t number)
{
    return (struct tx_value){ .kind = TX_INT, .number = number };
}

static inline struct tx_value tx_text(const char *text)
{
    return (struct tx_value){ .kind = text ? TX_TEXT : TX_NULL, .data = text };
}

static inline struct tx_value tx_same(struct tx_value value)
{
    return value;
}

#endif
