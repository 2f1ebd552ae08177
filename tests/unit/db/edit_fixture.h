/* What somebody does to the database with another program: without our functions and
 * triggers. */
#ifndef TESTS_UNIT_DB_EDIT_FIXTURE_H
#define TESTS_UNIT_DB_EDIT_FIXTURE_H

#include "tests/unit/db/store_fixture.h"

#include <sqlite3.h>

/* SQL has to change something. */
static inline void edit(struct fixture *f, const char *sql)
{
    sqlite3 *db;
    char *error = NULL;

    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK) {
        fail_msg("%s: %s", sql, error);
    }
    assert_true(sqlite3_changes(db) > 0);
    sqlite3_close(db);
}

#endif
