/* A new database is made of db/schema.sql, which is what the migrations arrive at. */
#include "tests/unit/db/file_fixture.h"

#include "daemon/base/array.h"
#include "daemon/base/buf.h"
#include "daemon/base/embed.h"
#include "db/migrate.h"

static void collect(void *arg, const struct embed *file)
{
    struct migration **next = arg;

    *(*next)++ = (struct migration){ file->name, file->start };
}

/* Each migration was executed on it; caller closes it. */
static sqlite3 *migrated(void)
{
    static struct migration list[1000];
    struct migration *end = list;
    struct err err = { .message = "" };
    sqlite3 *db;
    int from;

    embed_each("db/migrations/", collect, &end);
    assert_int_equal(end - list, migrate_current());
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    if (migrate_apply(db, list, migrate_current(), &from, &err) != ERR_OK) {
        fail_msg("%s", err.message);
    }
    return db;
}

static sqlite3 *made_at_once(void)
{
    struct err err = { .message = "" };
    sqlite3 *db;

    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    if (migrate_latest(db, &err) != ERR_OK) {
        fail_msg("%s", err.message);
    }
    return db;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement;

    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    return statement;
}

static void put_rows(sqlite3 *db, const char *table, struct buf *out)
{
    char *sql = sqlite3_mprintf("SELECT * FROM %s ORDER BY 1", table);
    sqlite3_stmt *rows = prepare(db, sql);
    const char *separator = "\n    (";

    buf_printf(out, "INSERT INTO %s VALUES", table);
    while (sqlite3_step(rows) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(rows); i++) {
            const char *quote = sqlite3_column_type(rows, i) == SQLITE_TEXT ? "'" : "";

            buf_printf(out, "%s%s%s%s", separator, quote,
                       (const char *)sqlite3_column_text(rows, i), quote);
            separator = ", ";
        }
        separator = "),\n    (";
    }
    buf_puts(out, ");\n");
    sqlite3_finalize(rows);
    sqlite3_free(sql);
}

static bool is_made_by_sqlite(const char *table)
{
    return strncmp(table, "sqlite_", 7) == 0;
}

/* All that is in DB, as statements that make it; caller frees. */
static char *dump(sqlite3 *db)
{
    struct buf out = BUF_INIT;
    struct buf rows = BUF_INIT;
    sqlite3_stmt *all = prepare(db,
                                "SELECT type, name, sql FROM sqlite_schema"
                                " WHERE sql IS NOT NULL ORDER BY type = 'trigger',"
                                " type = 'index', type = 'view', name");

    while (sqlite3_step(all) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(all, 1);
        char *count = sqlite3_mprintf("SELECT count(*) FROM \"%w\"", name);

        if (!is_made_by_sqlite(name)) {
            buf_printf(&out, "%s;\n", (const char *)sqlite3_column_text(all, 2));
        }
        if (strcmp(name, "commits") == 0) { /* its lineage is drawn */
            assert_int_equal(ask(db, count), 1);
            buf_puts(&rows, "INSERT INTO commits VALUES (random(), 0);\n");
        } else if (strcmp((const char *)sqlite3_column_text(all, 0), "table") == 0 &&
                   ask(db, count) > 0) {
            put_rows(db, name, &rows);
        }
        sqlite3_free(count);
    }
    sqlite3_finalize(all);
    buf_add(&out, rows.data, rows.length);
    buf_release(&rows);
    return buf_detach(&out, NULL);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* REPROD_WRITE_SCHEMA=db/schema.sql writes it anew. */
static void test_the_schema(void **state)
{
    const char *path = getenv("REPROD_WRITE_SCHEMA");
    sqlite3 *db = migrated();
    char *expected = dump(db);

    (void)state;
    sqlite3_close(db);
    if (path) {
        write_file(path, expected);
    } else {
        char *made;

        assert_string_equal(embed_find("db/schema.sql")->start, expected);
        db = made_at_once();
        made = dump(db);
        assert_string_equal(made, expected);
        assert_int_equal(ask(db, "PRAGMA user_version"), migrate_current());
        sqlite3_close(db);
        free(made);
    }
    free(expected);
}

/* Each has a lineage of its own. */
static void test_what_is_drawn(void **state)
{
    sqlite3 *one = made_at_once();
    sqlite3 *other = made_at_once();

    (void)state;
    assert_true(ask(one, "SELECT lineage FROM commits") !=
                ask(other, "SELECT lineage FROM commits"));
    sqlite3_close(one);
    sqlite3_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_schema),
        cmocka_unit_test(test_what_is_drawn),
    };

    return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}
