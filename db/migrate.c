#include "db/migrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "daemon/base/clock.h"
#include "daemon/base/embed.h"
#include "daemon/base/log.h"
#include "db/integrity/row_sum.h"
#include "db/integrity/totals.h"
#include "db/tx.h"

enum { MIGRATIONS_MAX = 1000 };

static const char PREFIX[] = "db/migrations/";

static void count_file(void *arg, const struct embed *file)
{
    (void)file;
    ++*(int *)arg;
}

int migrate_current(void)
{
    int count = 0;

    embed_each(PREFIX, count_file, &count);
    return count;
}

static enum err_code execute(sqlite3 *db, const char *sql, struct err *err)
{
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? ERR_OK : tx_error(db, rc, err);
}

static enum err_code read_version(sqlite3 *db, int *ret_version, struct err *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &statement, NULL);

    *ret_version = 0;
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(statement);
    }
    if (rc == SQLITE_ROW) {
        *ret_version = sqlite3_column_int(statement, 0);
    }
    sqlite3_finalize(statement);
    return rc == SQLITE_ROW ? ERR_OK : tx_error(db, rc, err);
}

static enum err_code migrate_rows(sqlite3 *db, const struct migration *migration,
                                  struct err *err)
{
    char *renew;
    enum err_code code = totals_hold(db, &renew, err);

    if (code == ERR_OK) {
        code = execute(db, migration->sql, err);
    }
    if (code == ERR_OK) {
        code = execute(db, renew, err);
    }
    free(renew);
    return code;
}

static enum err_code apply_one(sqlite3 *db, const struct migration *migration, int number,
                               struct err *err)
{
    char version[64];

    snprintf(version, sizeof version, "PRAGMA user_version = %d", number);
    if (execute(db, "BEGIN IMMEDIATE", err) == ERR_OK &&
        migrate_rows(db, migration, err) == ERR_OK &&
        execute(db, version, err) == ERR_OK && execute(db, "COMMIT", err) == ERR_OK) {
        return ERR_OK;
    }
    if (!sqlite3_get_autocommit(db)) {
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    }
    return err_wrap(err, "%s", migration->name);
}

/* Rows that refer to one that is missing. */
static enum err_code count_dangling(sqlite3 *db, int64_t *ret_count, struct err *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(db, "SELECT count(*) FROM pragma_foreign_key_check", -1,
                                &statement, NULL);

    if (rc == SQLITE_OK) {
        rc = sqlite3_step(statement);
    }
    *ret_count = rc == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    return rc == SQLITE_ROW ? ERR_OK : tx_error(db, rc, err);
}

/* Some may have been BEFORE, and a person may have acknowledged them. */
static enum err_code check_dangling(sqlite3 *db, int64_t before, struct err *err)
{
    int64_t after;
    enum err_code code = count_dangling(db, &after, err);

    return code == ERR_OK && after > before
               ? err_set(err, ERR_CORRUPT,
                         "database: a row refers to one that is missing")
               : code;
}

/* With many runs it takes a while, in which nothing answers. */
static void log_begin(sqlite3 *db, int from, int to)
{
    const char *path = sqlite3_db_filename(db, "main");
    struct stat st = { .st_size = 0 };

    if (from > 0) {
        stat(path ? path : "", &st);
        log_info(
            "database: going from schema %d to %d, %.1f GB; nothing is served until "
            "that is done",
            from, to, (double)st.st_size / 1e9);
    }
}

enum err_code migrate_apply(sqlite3 *db, const struct migration *list, int count,
                            int *ret_from, struct err *err)
{
    int64_t begin_ms = clock_monotonic_ms();
    int64_t dangling;
    enum err_code code = row_sum_register(db) == SQLITE_OK
                             ? read_version(db, ret_from, err)
                             : tx_error(db, SQLITE_ERROR, err);

    if (code != ERR_OK) {
        return code;
    }
    if (*ret_from > count) {
        return err_set(err, ERR_NEWER,
                       "the database has schema %d, this program knows up to %d: use the "
                       "newer reprod that made it",
                       *ret_from, count);
    }
    if (*ret_from == count) {
        return ERR_OK;
    }
    log_begin(db, *ret_from, count);
    code = count_dangling(db, &dangling, err);
    /* A migration may change what a table's CHECK says. */
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
    for (int i = *ret_from; i < count && code == ERR_OK; i++) {
        code = apply_one(db, &list[i], i + 1, err);
    }
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (code == ERR_OK) {
        code = check_dangling(db, dangling, err);
    }
    if (code == ERR_OK && *ret_from > 0) {
        log_info("database: it has schema %d after %.1f s", count,
                 (double)(clock_monotonic_ms() - begin_ms) / 1e3);
    }
    return code;
}

struct collection {
    struct migration list[MIGRATIONS_MAX];
    int count;
};

static void collect(void *arg, const struct embed *file)
{
    struct collection *all = arg;

    if (all->count < MIGRATIONS_MAX) {
        all->list[all->count++] = (struct migration){ file->name, file->start };
    }
}

/* A file that is missing or numbered twice would shift all that follow. */
static enum err_code check_numbers(const struct collection *all, struct err *err)
{
    for (int i = 0; i < all->count; i++) {
        if (strtol(all->list[i].name + sizeof PREFIX - 1, NULL, 10) != i + 1) {
            return err_set(err, ERR_INTERNAL, "%s should have number %d",
                           all->list[i].name, i + 1);
        }
    }
    return all->count > 0 ? ERR_OK
                          : err_set(err, ERR_INTERNAL, "no migrations are built in");
}

/* Nothing was ever made in DB. */
static enum err_code is_new(sqlite3 *db, bool *ret_new, struct err *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(db,
                                "SELECT 1 FROM sqlite_schema UNION ALL"
                                " SELECT 1 FROM pragma_user_version WHERE user_version",
                                -1, &statement, NULL);

    if (rc == SQLITE_OK) {
        rc = sqlite3_step(statement);
    }
    *ret_new = rc == SQLITE_DONE;
    sqlite3_finalize(statement);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? ERR_OK : tx_error(db, rc, err);
}

/* What all migrations make of nothing; one after the other they take ten times as long.
 */
static enum err_code make(sqlite3 *db, int version, struct err *err)
{
    const struct embed *file = embed_find("db/schema.sql");

    return file ? apply_one(db, &(struct migration){ file->name, file->start }, version,
                            err)
                : err_set(err, ERR_INTERNAL, "db/schema.sql is not built in");
}

enum err_code migrate_latest(sqlite3 *db, struct err *err)
{
    struct collection all = { .count = 0 };
    enum err_code code;
    bool new_one = false;
    int from;

    embed_each(PREFIX, collect, &all);
    code = check_numbers(&all, err);
    if (code == ERR_OK) {
        code = is_new(db, &new_one, err);
    }
    if (code == ERR_OK && new_one) {
        return make(db, all.count, err);
    }
    return code == ERR_OK ? migrate_apply(db, all.list, all.count, &from, err) : code;
}
