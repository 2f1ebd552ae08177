/* Makes the Nth statement of a function fail, for every N: what the function does is then
 * done whole or not at all, and the one who called hears of it. */
#ifndef TESTS_UNIT_DB_FAULTS_FIXTURE_H
#define TESTS_UNIT_DB_FAULTS_FIXTURE_H

#include "tests/unit/db/store_fixture.h"

#include <inttypes.h>

#include "daemon/base/buf.h"
#include "db/tx.h"

struct faulty {
    store_fn fn;
    void *arg;
    int countdown;    /* the statement that fails; those of triggers do not count */
    char failed[160]; /* its beginning; "": it did not come to that */
};

/* Before the statement does anything. */
static inline int fail_statement(unsigned kind, void *context, void *statement,
                                 void *text)
{
    struct faulty *f = context;

    (void)kind;
    if (strncmp(text, "--", 2) != 0 && --f->countdown == 0) {
        snprintf(f->failed, sizeof f->failed, "%s", (const char *)text);
        sqlite3_interrupt(sqlite3_db_handle(statement));
    }
    return 0;
}

static inline enum err_code faulty_run(struct tx *tx, void *arg, struct err *err)
{
    struct faulty *f = arg;
    enum err_code code;

    sqlite3_trace_v2(tx->db, SQLITE_TRACE_STMT, fail_statement, f);
    code = f->fn(tx, f->arg, err);
    sqlite3_trace_v2(tx->db, 0, NULL, NULL);
    return code;
}

static inline void dump_table(sqlite3 *db, const char *name, struct buf *out)
{
    char *sql = sqlite3_mprintf("SELECT * FROM \"%w\"", name);
    sqlite3_stmt *rows;

    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &rows, NULL), SQLITE_OK);
    while (sqlite3_step(rows) == SQLITE_ROW) {
        buf_puts(out, name);
        for (int i = 0; i < sqlite3_column_count(rows); i++) {
            const unsigned char *text = sqlite3_column_text(rows, i);

            buf_printf(out, "|%s", text ? (const char *)text : "NULL");
        }
        buf_puts(out, "\n");
    }
    sqlite3_finalize(rows);
    sqlite3_free(sql);
}

static inline enum err_code dump(struct tx *tx, void *arg, struct err *err)
{
    sqlite3_stmt *tables;

    (void)err;
    assert_int_equal(
        sqlite3_prepare_v2(tx->db,
                           "SELECT name FROM sqlite_master WHERE type = 'table'"
                           " AND name <> 'commits'", /* it counts them */
                           -1, &tables, NULL),
        SQLITE_OK);
    while (sqlite3_step(tables) == SQLITE_ROW) {
        dump_table(tx->db, (const char *)sqlite3_column_text(tables, 0), arg);
    }
    sqlite3_finalize(tables);
    return ERR_OK;
}

/* All that is stored, as text; caller frees. */
static inline char *fixture_dump(struct fixture *f)
{
    struct buf out = BUF_INIT;

    fixture_read(f, dump, &out);
    return buf_detach(&out, NULL);
}

/* Runs FN with each of its statements failing once, and at last with none; ARG, of SIZE
 * bytes, is what it was before each.  Returns how many statements there were. */
static inline int fail_each_statement(struct fixture *f, bool writes, store_fn fn,
                                      void *arg, size_t size)
{
    char *before = fixture_dump(f);
    void *kept = malloc(size);
    int n = 0;

    assert_non_null(kept);
    memcpy(kept, arg, size);
    for (;;) {
        struct faulty faulty = { .fn = fn, .arg = arg, .countdown = ++n };
        struct err err = { .message = "" };
        enum err_code code;
        char *after;

        memcpy(arg, kept, size);
        code = writes ? store_write_sync(f->store, faulty_run, &faulty, &err)
                      : store_read_sync(f->store, faulty_run, &faulty, &err);
        if (!faulty.failed[0]) {
            assert_int_equal(code, ERR_OK);
            break;
        }
        if (code != ERR_TIMEOUT) { /* which an interrupted statement is */
            fail_msg("statement %d failed, and the answer is %d %s: %s", n, code,
                     err.message, faulty.failed);
        }
        after = fixture_dump(f);
        if (strcmp(before, after) != 0) {
            fail_msg("statement %d failed, and something is stored: %s", n,
                     faulty.failed);
        }
        free(after);
    }
    free(before);
    free(kept);
    return n - 1;
}

#endif
