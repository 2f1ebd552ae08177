/* A file that may be any database, or none: what is in it, and what a store makes of it.
 */
#ifndef TESTS_UNIT_DB_FILE_FIXTURE_H
#define TESTS_UNIT_DB_FILE_FIXTURE_H

#include "tests/unit/db/store_fixture.h"

#include <sqlite3.h>

static inline int64_t ask(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *s;
    int64_t value;

    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    value = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return value;
}

static inline void execute_in(const char *path, const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* The path of a file that is not there yet. */
static inline int setup_empty(void **state)
{
    *state = fixture_new();
    return 0;
}

#define FILE_TEST(f) cmocka_unit_test_setup_teardown(f, setup_empty, fixture_teardown)

#endif
